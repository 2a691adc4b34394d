"""Numbers in the captions of the first picture are those of its records."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDS = json.loads((ROOT / "docs/figures/records/sequential-recovery-quick.json").read_text())
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight")


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_caption_states_what_the_records_hold(page):
    text = (ROOT / page).read_text()
    caption = " ".join(re.search(r"^\*[^*\n][^*]*features[^*]*\*$", text, re.MULTILINE)[0].split())
    points = RECORDS["points"]
    (replicates,) = {len(point["metrics"]) for point in points}
    (dimension,) = {point["parameters"]["dimension"] for point in points}
    (features,) = {point["parameters"]["features"] for point in points}
    assert f"over {WORDS[replicates]} replicates" in caption
    assert f"in dimension {dimension}." in caption
    assert f"{WORDS[features]} hidden features" in caption.lower()
    assert "thresholds for d → ∞" in caption


def test_the_tutorial_states_what_the_records_hold():
    text = " ".join((ROOT / "docs/tutorial.md").read_text().split())
    first = [entry["squared_overlap"][0] for entry in RECORDS["points"][0]["metrics"]]
    assert f"feature 1 has a squared overlap of {sum(first) / len(first):.2f}" in text
    count = len(RECORDS["points"][0]["metrics"])
    assert f"{WORDS[len(RECORDS['points'])]} sizes with {WORDS[count]} replicates" in text
