"""Pages with measurements of benchmarks: random settings, and false alarms of a right theory."""

import csv
import importlib.util
import sys
from itertools import islice
from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest

from solvable.frame import registry

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"


def benchmark(name):
    """Import a script of `benchmarks` by its path."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(BENCHMARKS))
    return module


drawing = benchmark("random_settings")
CHEAP = (
    "diagonal-network",
    "matrix-sensing",
    "neural-lofi-images",
    "kernel-staircase",
    "boltzmann-machine",
)


def test_every_system_has_ranges_of_its_own_parameters():
    assert set(drawing.RANGES) == {listing.name for listing in registry.available()}
    for name, ranges in drawing.RANGES.items():
        fields = registry.load(name).parameters.model_fields
        assert set(ranges) - {"axis", "replicates"} <= set(fields), name
        assert ranges["axis"]["parameter"] in fields, name
        assert ranges.get("replicates", 8) >= 4, name


def test_dimensions_are_ten_or_more():
    for name, ranges in drawing.RANGES.items():
        stated = ranges.get("dimension")
        assert stated is None or stated["from"] >= 10, name


@pytest.mark.parametrize("name", CHEAP)
def test_drawn_settings_stay_in_the_stated_range(name):
    system, ranges = registry.load(name), drawing.RANGES[name]
    axis = ranges["axis"]
    for setting, _ in islice(drawing.draw_settings(system, 3, 4, seed=5), 3):
        for key, value in setting.items():
            if key == axis["parameter"]:
                assert len(value) <= 4
                assert value == sorted(value)
                assert value[-1] <= axis.get("most", float("inf"))
                continue
            stated = ranges.get(key)
            if isinstance(stated, dict) and "from" in stated:
                low, high = stated["from"], stated["to"]
                zero = value == 0 and stated.get("zero", 0) > 0
                assert zero or 0.99 * low <= value <= 1.01 * high
            elif isinstance(stated, list):
                assert value in stated
            elif (
                stated is None
                and get_origin(system.parameters.model_fields[key].annotation) is Literal
            ):
                assert value in get_args(system.parameters.model_fields[key].annotation)
        for corner in drawing.corners(setting):
            system.parameters(**corner)


def test_samples_lie_between_a_third_and_thirty_thresholds():
    system = registry.load("matrix-sensing")
    axis = drawing.RANGES["matrix-sensing"]["axis"]
    for setting, _ in drawing.draw_settings(system, 3, 4, seed=6):
        single = next(drawing.corners(setting))
        unit = drawing.threshold(system, single, axis["threshold"])
        values = setting[axis["parameter"]]
        assert 0.33 * unit <= values[0]
        assert values[-1] <= 30.1 * unit


def test_a_seed_repeats_its_draw():
    system = registry.load("diagonal-network")
    once, again = (list(drawing.draw_settings(system, 3, 4, seed=8)) for _ in range(2))
    assert once == again


def test_the_page_of_random_settings_shows_the_numbers_of_its_data():
    page = benchmark("random_settings_page")
    text = page.PAGE.read_text()
    assert text.split(page.MARKS[0])[1].split(page.MARKS[1])[0] == page.block()
    assert len(text.split()) <= 1400
    for file in (*(BENCHMARKS / "random_settings").iterdir(), page.FIGURE):
        assert file.stat().st_size < 300_000


def test_the_drawn_settings_are_those_of_the_ranges():
    page = benchmark("random_settings_page")
    for record in page.settings():
        # Parameters that were added after the draw have their defaults.
        assert record["parameters"].keys() <= (
            registry.load(record["system"]).parameters.model_fields.keys()
        )


def test_the_page_of_verdicts_shows_the_numbers_of_its_data():
    text = (ROOT / "docs" / "verdicts.md").read_text()
    table = benchmark("false_alarms").table(str(BENCHMARKS / "false_alarms.csv"))
    assert text.split("<!-- table -->\n")[1].split("\n<!-- end -->")[0] == table


def test_the_page_of_benchmarks_shows_the_numbers_of_explore():
    explore = benchmark("explore")
    text = explore.PAGE.read_text()
    assert text.split(explore.MARKS[0])[1].split(explore.MARKS[1])[0] == explore.table()
    assert {row[0] for row in explore.read()} == {s.name for s in registry.available()}


def test_a_move_that_takes_too_long_is_ended_and_listed(monkeypatch, tmp_path):
    explore = benchmark("explore")
    monkeypatch.setattr(explore, "LONGEST_MOVE", 0.02)
    monkeypatch.setattr(explore, "FILE", tmp_path / "explore.csv")

    def forever(system, settings, seconds):
        while settings:
            pass

    monkeypatch.setattr(explore, "theory_figures", forever)
    monkeypatch.setattr(explore, "LONGEST", 0.2)
    rows = list(explore.moves(registry.load("matrix-sensing")))
    assert len(rows) > 10
    assert all(row[3] == "" for row in rows)
    fast = ("matrix-sensing", "noise", 1.5, 0.2, 0.2, 9, 3)
    explore.write([*rows, fast])
    assert explore.table().splitlines()[-1] == (
        f"| matrix-sensing | 1 | 0.20 | 0.20 | {1 / (len(rows) + 1):.0%} | {len(rows)} |"
    )


def test_the_pages_name_the_systems_that_they_leave_out():
    systems = {listing.name for listing in registry.available()}
    with (BENCHMARKS / "false_alarms.csv").open() as stream:
        judged = {row["system"] for row in csv.DictReader(stream)}
    drawn = {record["system"] for record in benchmark("random_settings_page").settings()}
    verdicts = (ROOT / "docs" / "verdicts.md").read_text()
    assert f"{len(judged)} of the {len(systems)} systems" in verdicts
    for text, present in (
        (verdicts, judged),
        ((ROOT / "docs" / "random-settings.md").read_text(), drawn),
    ):
        assert all(f"`{name}`" in text for name in systems - present)
