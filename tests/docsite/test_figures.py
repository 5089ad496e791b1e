"""The figures of docs/explanation/method.md can be drawn anew, and are those that it shows."""

import re

from docsite.figures import draw_all
from tests.documents import DOCS


def test_figures_are_drawn_by_the_names_that_are_shown(tmp_path):
    made = draw_all(tmp_path)
    text = (DOCS / "explanation/method.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"images/([\w-]+\.svg)", text)) == sorted(path.name for path in made)
    for path in made:
        assert path.read_text(encoding="utf-8").startswith("<?xml")
        assert (DOCS / "images" / path.name).exists()
