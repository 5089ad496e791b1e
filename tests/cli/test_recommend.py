"""`ccq recommend`: the sums, what fits, and what it says where nothing does."""

import json

import numpy as np
import pytest

from ccq_cli import sizing
from ccq_cli.recommend import Amount
from ccq_cli.sizing import BITS, PROCESS_BYTES, Wanted, advice, choose, option, size
from ccq_core import CCQ
from service import latents
from service.settings import Settings
from tests.cli.bulk import ok, refused


def wanted(items=1_000_000, memory=None, latency=None, dims=None, keep="none", norm=True):
    return Wanted(items, dims or {"image": 512, "text": 512}, 60, keep, norm, memory, latency)


def options(given, ns=lambda bits: bits / 200):
    return [option(given, bits, ns(bits)) for bits in BITS]


def test_the_sums():
    one = option(wanted(), 32, 0.15)
    assert (one.row_bytes, one.memory) == (5, PROCESS_BYTES + 1_000_000 * 3 * 5)
    assert one.memory_reencoding - one.memory == 15_000_000
    assert one.disk == 15_000_000 + 1_000_000 * (47 + 60)
    assert one.scan_ms == pytest.approx(0.15)
    assert one.latency_ms == pytest.approx(0.75)
    assert option(wanted(norm=False), 32, 0.15).row_bytes == 4
    assert option(wanted(dims={"image": 512}), 32, 0.15).memory == PROCESS_BYTES + 5_000_000
    kept = option(wanted(keep="float16"), 32, 0.15).disk - one.disk
    assert kept == pytest.approx(1_000_000 * 2 * 1024 * 1.15)


def test_a_measured_export_is_near_the_sums():
    """docs/bulk.md has measured 122 and 709 bytes an item, of 128 + 128 dimensions with ids and payloads of 60."""
    for keep, measured in (("none", 122), ("float16", 709)):
        found = option(wanted(dims={"image": 128, "text": 128}, keep=keep), 32, 0.1).disk / 1_000_000
        assert found == pytest.approx(measured, rel=0.05)


def test_a_data_directory_takes_what_the_sums_say(tmp_path):
    """docs/operations/sizing.md: a little less, with ids and payloads of 60 bytes together."""
    n = 20_000
    rng = np.random.default_rng(0)
    for name in ("image", "text"):
        np.save(tmp_path / f"{name}.npy", rng.standard_normal((n, 16), dtype=np.float32))
    CCQ(bits=16, iterations=1).fit({name: np.load(tmp_path / f"{name}.npy")[:2000] for name in ("image", "text")}).save(
        tmp_path / "model.ccq"
    )
    (tmp_path / "ids.txt").write_text("".join(f"p{i:07}\n" for i in range(n)))
    (tmp_path / "payloads.jsonl").write_text(n * (json.dumps({"title": 39 * "x"}) + "\n"))  # 52 bytes
    arrays = [f"{name}={tmp_path / name}.npy" for name in ("image", "text")]
    rows = ["--ids", tmp_path / "ids.txt", "--payloads", tmp_path / "payloads.jsonl"]
    ok("index", *arrays, *rows, "--data", tmp_path / "store", "--model", tmp_path / "model.ccq", "--keep", "float16")
    measured = sum(file.stat().st_size for file in (tmp_path / "store").iterdir())
    said = option(wanted(items=n, dims={"image": 16, "text": 16}, keep="float16"), 16, 0.1).disk
    assert 0.9 * said < measured < 1.05 * said


def test_the_longest_that_fits_is_chosen():
    assert choose(options(wanted())).bits == 128
    assert choose(options(wanted(memory=PROCESS_BYTES + 3 * 9 * 1_000_000))).bits == 64
    assert choose(options(wanted(latency=0.6 + 0.25))).bits == 48
    kept = wanted(memory=PROCESS_BYTES + 2 * 3 * 9 * 1_000_000, keep="int8")  # it may be encoded anew
    assert choose(options(kept)).bits == 64
    assert choose(options(wanted(memory=PROCESS_BYTES + 2 * 3 * 9 * 1_000_000))).bits == 128
    few = choose(options(wanted(items=12_000)))
    assert (few.bits, few.few) == (64, True)
    assert choose(options(wanted(items=30_000))).bits == 64
    assert choose(options(wanted(items=30_000 * 128 // 64))).bits == 128
    assert choose(options(wanted(items=100, memory=PROCESS_BYTES + 100 * 3 * 4))).bits == 24
    assert choose(options(wanted(memory=1000))) is None
    enough = options(wanted(items=5_000))  # what is few agrees with what is told
    assert ([one.bits for one in enough if not one.few], advice(wanted(items=5_000), enough)) == ([8], [])


def test_what_does_not_fit_is_said_and_what_to_change():
    given = wanted(memory=PROCESS_BYTES + 3 * 2 * 400_000, latency=0.602)
    said = "\n".join(advice(given, options(given)))
    assert "at most 400,000 items of this kind fit" in said
    assert "index items by one modality alone" in said
    assert "--norm none" in said
    assert "more processors" in said
    alone = wanted(memory=1000, dims={"image": 8}, norm=False)
    said = advice(alone, options(alone))
    assert len(said) == 1
    assert said[0].endswith("131.0 MB of 1.0 kB: a server without any item takes 130.0 MB already; give it more memory")
    assert advice(wanted(), options(wanted())) == []
    assert "few for 256 codewords" in advice(wanted(items=100), options(wanted(items=100)))[0]


def test_what_ranking_anew_takes_is_told_where_features_are_kept():
    given = wanted(items=50_000_000, dims={"image": 384, "text": 256}, keep="int8")
    said = [hint for hint in advice(given, options(given)) if hint.startswith("rescore: ")]
    assert len(said) == 1
    longest = choose(options(given)).bits
    assert f"holds {size(50_000_000 * (2 * longest + 12))} more for each database" in said[0]
    assert f"({longest} latent dimensions" in said[0]
    narrow = wanted(dims={"image": 384, "text": 20}, keep="float16")
    assert "holds 52.0 MB more" in advice(narrow, options(narrow))[0]
    assert sizing.LATENT_BYTES == latents._OTHER_BYTES
    assert size(Settings.model_fields["rescore_cache_bytes"].default) == "268.4 MB"


def test_what_is_measured_grows_with_the_code(monkeypatch):
    seconds = {8: 3.0, 16: 2.0, 24: 2.5, 32: 2.4, 48: 4.0}
    monkeypatch.setattr(sizing, "_measure", lambda bits, _items: seconds[bits])
    assert sizing.measure(list(seconds), 100) == [2.0, 2.0, 2.4, 2.4, 4.0]


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("10M", 10**7),
        ("1e7", 10**7),
        ("4GB", 4 * 10**9),
        ("512MiB", 2**29),
        ("10_000", 10**4),
        ("1.5k", 1500),
        ("7", 7),
    ],
)
def test_amounts(text, amount):
    assert Amount().convert(text, None, None) == amount


def test_the_verb(monkeypatch):
    monkeypatch.setattr(sizing, "_MOST_ROWS", 1000)
    monkeypatch.setattr(sizing, "_SAMPLE_ROWS", 1000)
    arguments = ["recommend", "--items", "1M", "--dims", "image=512,text=512", "--memory"]
    found = json.loads(ok(*arguments, "200MB", "--json"))
    assert (found["recommended"], [one["bits"] for one in found["options"]]) == (128, list(BITS))
    assert all(one["scan_ms"] > 0 and one["fits"] for one in found["options"])
    said = ok(*arguments, "140MB")
    assert "`ccq train --bits 16 ...`" in said
    assert "`ccq evaluate`" in said
    assert "too much" in said
    said = refused(*arguments, "1MB")
    assert "Nothing fits." in said
    for wrong in ("0", "many", "-5", "1XB"):
        assert "expected a number of 1 or more" in refused(*arguments, wrong)
    assert "dimensions of 1 or more" in refused("recommend", "--items", 5, "--dims", "image=0")
    assert "expected NAME=VALUE" in refused("recommend", "--items", 5, "--dims", "image")


def test_dimensions_in_one_piece_or_each_by_itself():
    together, apart = (
        [option["disk"] for option in json.loads(ok("recommend", "--items", "100", "--json", *dims))["options"]]
        for dims in (("--dims", "a=3,b=5"), ("--dims", "a=3", "--dims", "b=5"))
    )
    assert together == apart
    assert "b is given twice" in refused("recommend", "--items", "100", "--dims", "a=3,b=4", "--dims", "b=5")
