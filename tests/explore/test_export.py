"""Grids of an exported page, its limits and its file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from solvable.errors import InvalidParameter
from solvable.explore import export
from solvable.explore.export import write_export
from solvable.explore.export_grid import settings_of, sliders_of
from solvable.explore.lines import theory_figures
from solvable.frame import registry

SYSTEM = registry.load("kernel-staircase")


def test_counts_spread_values_and_keep_the_setting():
    sliders = sliders_of(SYSTEM, {"noise": 4, "dimension": [10, 30]}, {"noise": 0.25})
    assert len(sliders[0].values) == 4
    assert 0.25 in sliders[0].values
    grid = settings_of(sliders)
    assert len(grid) == 8
    assert grid[1] == {"noise": sliders[0].values[0], "dimension": 30}


@pytest.mark.parametrize(
    ("along", "words"),
    [
        ({"nois": 3}, "noise"),
        ({"noise": 0}, "1 or more"),
        ({"noise": []}, "at least one"),
        ({"noise": 30, "dimension": 30}, "allowed: up to 500"),
        ({"noise": 2, "dimension": 2, "ridge": 2, "cubic": 2}, "up to 3 sliders"),
        ({"noise": 10**9}, "allowed: up to 500"),
    ],
)
def test_bad_grids_are_refused_in_one_line(along, words, tmp_path):
    with pytest.raises(InvalidParameter) as error:
        write_export(SYSTEM, tmp_path / "page.html", along=along)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_large_file_and_a_long_time_are_refused_with_their_size(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "MOST_BYTES", 5_000)
    with pytest.raises(InvalidParameter, match=r"a file of about 0 MB; allowed: up to 30 minutes"):
        write_export(SYSTEM, tmp_path / "page.html", along={"noise": 5})
    monkeypatch.undo()
    monkeypatch.setattr(export, "MOST_SECONDS", 1e-6)
    with pytest.raises(InvalidParameter, match=r"about \d+ minutes; allowed"):
        write_export(SYSTEM, tmp_path / "page.html", along={"noise": 5})
    assert list(tmp_path.iterdir()) == []


def test_the_page_replaces_itself_and_nothing_else(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(export, "picture", lambda _: "data:,")
    path = tmp_path / "page.html"
    found = write_export(SYSTEM, path, along={"noise": 2})
    assert found.size == path.stat().st_size
    assert found.settings == 2
    assert str(found).endswith(" s")
    assert "MB" in str(found)
    write_export(SYSTEM, path, along={"noise": 2})
    other = tmp_path / "other.html"
    other.write_text("a letter")
    with pytest.raises(InvalidParameter, match="is not replaced"):
        write_export(SYSTEM, other, along={"noise": 2})
    assert other.read_text() == "a letter"
    with pytest.raises(InvalidParameter, match="is a directory"):
        write_export(SYSTEM, tmp_path, along={"noise": 2})


def test_each_setting_is_drawn_once_and_stands_in_the_order_of_the_grid(tmp_path, monkeypatch):
    drawn = []

    def draw(system, settings, *rest, **options):
        drawn.append(settings["noise"])
        return theory_figures(system, settings, *rest, **options)

    monkeypatch.setattr(export, "theory_figures", draw)
    monkeypatch.setattr(export, "picture", lambda _: "data:,")
    path = tmp_path / "page.html"
    write_export(SYSTEM, path, settings={"noise": 0.2}, along={"noise": [0.1, 0.2, 0.3]})
    assert drawn == pytest.approx(
        [0.2, 0.1, 0.3]
    )  # the shown one first, for an estimate of the cost
    text = path.read_text("utf-8").partition('<script type="application/json" id="data">')[2]
    entries = json.loads(text.partition("</script>")[0])["entries"]
    words = [entry["command"].rpartition(" ")[2] for entry in entries]
    assert words == ["noise=0.1", "noise=0.2", "noise=0.3"]


def test_settings_without_a_prediction_are_counted(tmp_path):
    system = registry.load("sequential-recovery")
    found = write_export(
        system,
        tmp_path / "page.html",
        settings={"second_layer": "in-sample"},
        along={"selection": ["modulus"]},
    )
    assert found.refused == 1
