"""Figures of README and docs: each has its command, and stored records still give the stored picture."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from solvable.frame import registry, traces

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
sys.path.insert(0, str(ROOT / "docs"))

import figure_records  # noqa: E402
import figures  # noqa: E402
from picture_data import (  # noqa: E402
    _differing,
    differences,
    of_figure,
    read_picture,
    write_picture,
)

NAMES = [*figures.DRAWN, *figures.ELSEWHERE]
QUICK = (  # redrawn from records within a second each
    "attention-indexed-error.svg",
    "diagonal-network.svg",
    "diagnose-heads.svg",
    "kernel-staircase.svg",
    "learn-curve.svg",
    "learn-filters.svg",
    "learn-strengths.svg",
    "quadratic-flow.svg",
    "scale-phases.svg",
    "scale-real-directions.svg",
    "scale-real-sheets.svg",
)
EXAMPLE = "diagonal-network.svg"


def redrawn(name):
    """Data of a picture, drawn from its records by the present program."""
    return figures.pictures([name], measure=False)[name]


def shown():
    """Names of the pictures that pages show."""
    text = "\n".join(page.read_text("utf-8") for page in PAGES)
    return set(re.findall(r"!\[[^\]]*\]\([^)]*figures/([\w-]+\.svg)\)", text))


def test_every_picture_of_a_page_has_its_command():
    assert shown() == set(NAMES)
    assert {path.name for path in figures.DIRECTORY.glob("*.svg")} == set(NAMES)


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "systems").glob("*-*.md")), ids=str)
def test_a_page_of_a_system_opens_with_its_figure(page):
    opening = re.split(r"^## ", page.read_text("utf-8"), maxsplit=1, flags=re.MULTILINE)[0]
    pictures = re.findall(r"^!\[([^\]]*)\]\(\.\./figures/[\w-]+\.svg\)", opening, re.MULTILINE)
    assert pictures, "no figure before the first heading"
    assert len(pictures[0]) > 40, "the alternative text does not describe the figure"
    assert opening.index("```console") < opening.index("![")


def test_records_are_complete_and_small():
    groups = figure_records.wanted(figures.DRAWN)
    needed = {figure_records.path_of(group).name for group in groups}
    files = list(figure_records.RECORDS.iterdir())
    assert {path.name for path in files} == needed | {
        "checkpoints-digits.json",
        "learn-digits.json",
        "scale-real.json",
    }
    assert max(path.stat().st_size for path in files) < 1e6
    assert sum(path.stat().st_size for path in files) < 3e6


@pytest.mark.parametrize("name", NAMES)
def test_the_file_is_the_drawing_of_its_data(name):
    stored = read_picture(figures.DIRECTORY / name)
    assert stored.intact
    if name in figures.DRAWN:
        asked = figures.DRAWN[name]
        assert asked.preset in registry.load(asked.system).presets
        assert stored.data["title"].startswith(asked.title)


@pytest.mark.parametrize("name", QUICK)
def test_stored_records_give_the_stored_picture(name):
    assert figures.check([name], structure=name == EXAMPLE) == {}


@pytest.mark.slow
def test_all_stored_records_give_the_stored_pictures():
    assert figures.check(NAMES) == {}


# The check fails when something changes.


def test_a_changed_theory_is_found(monkeypatch):
    system = registry.load(figures.DRAWN[EXAMPLE].system)
    predict = type(system).predict

    def changed(self, parameters):
        return {
            name: [v and 1.0001 * v for v in value] if isinstance(value, list) else value
            for name, value in predict(self, parameters).items()
        }

    monkeypatch.setattr(type(system), "predict", changed)
    found = figures.check([EXAMPLE], structure=False)
    assert any("y differs by up to" in line for line in found[EXAMPLE])


def test_a_changed_error_bar_is_found(monkeypatch):
    before = traces._measured

    def changed(trace, point):
        mean, error = before(trace, point)
        return mean, 1.0001 * error

    monkeypatch.setattr(traces, "_measured", changed)
    found = figures.check([EXAMPLE], structure=False)
    assert any("error differs by up to" in line for line in found[EXAMPLE])


def test_a_changed_record_is_found(monkeypatch, tmp_path):
    name = figure_records.path_of({EXAMPLE: figures.DRAWN[EXAMPLE]}).name
    content = json.loads((figure_records.RECORDS / name).read_text("utf-8"))
    metrics = content["points"][1]["metrics"][0]
    key = next(key for key, value in metrics.items() if isinstance(value, list))
    metrics[key][0] += 1e-3
    (tmp_path / name).write_text(json.dumps(content), "utf-8")
    monkeypatch.setattr(figure_records, "RECORDS", tmp_path)
    assert figures.check([EXAMPLE], structure=False)


def test_records_of_another_version_of_a_system_are_refused(monkeypatch):
    monkeypatch.setattr(registry.load(figures.DRAWN[EXAMPLE].system), "version", "other")
    with pytest.raises(SystemExit, match=r"now other\. Measure again: `python docs/figures\.py"):
        figures.check([EXAMPLE])


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        ({"title": "Another title"}, "title is 'Another title'"),
        ({"y_label": "share"}, "y_label is 'share'"),
        ({"series": ()}, "series has 0 entries"),
        ({"y_scale": "log"}, "y_scale is 'log'"),
    ],
)
def test_a_changed_figure_is_found(change, reported, tmp_path):
    picture = redrawn("scale-real-sheets.svg")
    changed = of_figure(replace(picture.drawn, **change))
    write_picture(tmp_path / "a.svg", changed)
    (line,) = differences(read_picture(tmp_path / "a.svg"), picture, structure=False)
    assert line.startswith(reported)


def test_an_edited_drawing_is_found(tmp_path):
    picture = redrawn("scale-real-sheets.svg")
    write_picture(tmp_path / "a.svg", picture)
    assert differences(read_picture(tmp_path / "a.svg"), picture) == []
    text = (tmp_path / "a.svg").read_text("utf-8")
    (tmp_path / "a.svg").write_text(
        text.replace("stroke-width: 1.1", "stroke-width: 3", 1), "utf-8"
    )
    (line,) = differences(read_picture(tmp_path / "a.svg"), picture)
    assert line == "the file is not the drawing of its data"


def test_another_drawing_of_the_same_data_is_found(tmp_path, monkeypatch):
    picture = redrawn("scale-real-sheets.svg")
    other = picture._replace(drawn=replace(picture.drawn, title="Another title", markers=()))
    write_picture(tmp_path / "a.svg", other)
    found = differences(read_picture(tmp_path / "a.svg"), picture)
    assert any(line.startswith("paths: ") for line in found)
    assert any(line.startswith("texts: ") for line in found)


def test_rounding_of_another_machine_is_no_difference(tmp_path):
    picture = redrawn("scale-real-sheets.svg")
    series = [replace(s, y=[v * (1 + 2e-7) for v in s.y]) for s in picture.drawn.series]
    write_picture(tmp_path / "a.svg", picture)
    changed = of_figure(replace(picture.drawn, series=series))
    assert differences(read_picture(tmp_path / "a.svg"), changed, structure=False) == []


def test_a_value_that_was_missing_is_a_difference():
    assert list(_differing("y ", [None, 2.0], [1.0, 2.0], 1e-6)) == ["y differs by up to inf"]
    assert list(_differing("y ", [None, 2.0], [None, 3.0], 1e-6)) == ["y differs by up to 1"]


def test_an_unknown_figure_or_option_is_refused():
    with pytest.raises(SystemExit, match=r"not drawn by this script: other\.svg"):
        figures.main(["other.svg"])
    with pytest.raises(SystemExit, match="--chekc: allowed: --list, --check or --from-records"):
        figures.main(["--chekc"])
