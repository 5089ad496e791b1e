"""kill -9 in the middle of writing: what was acknowledged is there, the rest whole or not at all.

The same by hand, for longer: `python -m tests.campaigns.kills`, `python -m tests.campaigns.reencodes`.
"""

from tests.campaigns.kills import Campaign
from tests.campaigns.reencodes import ReencodingCampaign


def test_nothing_acknowledged_is_lost_and_nothing_is_half_there(tmp_path):
    told = []
    report = Campaign(tmp_path / "data", 20160717, told.append).run(10)
    assert told == []
    assert report.clean, report
    assert report.acknowledged > report.kills >= 10
    assert report.unanswered > report.carried_out


def test_a_collection_has_the_old_model_and_its_codes_or_the_new_and_its(tmp_path):
    told = []
    report = ReencodingCampaign(tmp_path / "data", 20160718, told.append).run(4)
    assert told == []
    assert report.clean, report
    assert report.jobs + report.jobs_cut > 0
