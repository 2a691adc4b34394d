from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import solvable
from solvable.answers.page import page_html
from solvable.cli import main
from solvable.errors import InvalidParameter
from solvable.frame.drawn import Drawn
from solvable.plots.figure import Figure, Marker, Series
from solvable.plots.recording_backend import record
from solvable.study.compare import Comparison, compare_runs
from solvable.study.comparison_answer import answer
from solvable.study.comparison_figures import (
    Part,
    _chunks,
    _quantities,
    _together,
    overlaid,
    single,
)
from solvable.study.comparison_outputs import write_comparison
from solvable.study.comparison_tables import difference_tables
from solvable.study.differences import Difference, differences
from solvable.study.html import is_report

STORED = Path(__file__).parents[1] / "stored" / "quadratic-network.sqlite.gz"
HOSTILE = "</script><script>alert(1)</script> {{ 7 * 7 }}"


def drawn(shift: float = 0.0, entries: int = 1) -> Figure:
    x = np.array([1.0, 2.0, 3.0])
    series = [
        part
        for k in range(entries)
        for part in (
            Series(f"law {k}", x, x + k, colour=k),
            Series(f"measured {k}", x, x + k + shift, "points", x / 10, colour=k),
        )
    ]
    return Figure("error", "Error", "n", "error", series, markers=[Marker(2.0 + shift, "edge")])


def test_an_equal_line_is_drawn_once_and_points_in_the_colour_of_their_run():
    together = _together("error", [Part("a", drawn()), Part("b", drawn(0.5))])
    assert [(s.label, s.kind, s.colour) for s in together.series] == [
        ("law 0, all runs", "line", -1), ("a", "points", 0), ("b", "points", 1),
    ]  # fmt: skip
    assert [(line.x, line.label) for line in together.markers] == [
        (2.0, "edge, a"),
        (2.5, "edge, b"),
    ]
    record(together)


def test_bars_become_points_and_other_lines_keep_their_runs():
    bars = Figure(
        "law", "Law", "x", "density", [Series("bars", [0, 1, 2], [0.0, 1.0], "histogram")]
    )
    other = replace(bars, series=[Series("bars", [0, 2, 4], [0.5, 0.5], "histogram")])
    first, second = _together("law", [Part("a", bars), Part("b", other)]).series
    assert first.kind == second.kind == "points"
    assert (list(first.x), list(second.x)) == ([1.5], [1.0, 3.0])
    ends = [replace(drawn(), series=[Series("law", [1.0, 2.0], [1.0, end])]) for end in (2.0, 3.0)]
    lines = _together("law", [Part("a", ends[0]), Part("b", ends[1])]).series
    assert [line.label for line in lines] == ["a, law", "b, law"]


def test_many_quantities_and_many_runs_are_split():
    parts = [Part(str(k), drawn(k, entries=4)) for k in range(2)]
    split = list(_quantities(parts))
    assert [suffix for suffix, _ in split] == [f"-measured-{k}" for k in range(4)]
    assert {len(one.figure.series) for _, own in split for one in own} == {2}
    chunks = list(_chunks([Part(str(k), drawn()) for k in range(20)]))
    assert [len(chunk) for chunk in chunks] == [8, 8, 6]
    assert {chunk[0].label for chunk in chunks} == {"0"}


def with_figures(result, shift, names=("error",)):
    """Give a run prepared figures, as theory lines would take most of the time of these tests."""
    figures = [replace(drawn(shift), name=name) for name in names]
    result.__dict__["_drawn"] = Drawn(figures, [])
    return result


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return two runs of a stored study, one in a directory of a hostile name."""
    made = []
    for name in ("first", "<b>{{ 7 * 7 }}"):
        home = tmp_path_factory.mktemp("runs") / name
        home.mkdir()
        (home / "study.sqlite").write_bytes(gzip.decompress(STORED.read_bytes()))
        made.append(with_figures(solvable.load(home), len(made)))
    return made


def test_report_figures_and_differences_are_written(results, tmp_path, capsys):
    out = tmp_path / "out"
    found = compare_runs(results)
    write_comparison(found, out)
    page = (out / "report.html").read_text("utf-8")
    assert "<b>{{" not in page
    assert "&lt;b&gt;{{ 7 * 7 }}" in page
    assert "default-src 'none'" in page
    assert not is_report(out / "report.html")
    assert found.figure_names == ["error"]
    assert {path.name for path in (out / "figures").iterdir()} == {"error.svg", "error.pdf"}
    assert (out / "comparison.csv").read_text("utf-8").startswith("run,metric,")
    write_comparison(found, out)  # the same runs again
    assert found.figure("error").axes
    with pytest.raises(InvalidParameter, match="figure"):
        found.figure("no such figure")
    # neither another comparison nor other files are overwritten
    directories = [result.directory for result in results]
    (directories[0] / "report.html").write_text("mine")
    for given, place in ((directories[::-1], out), (directories, directories[0])):
        before = (place / "report.html").read_bytes()
        assert main(["compare", *map(str, given), "--output", str(place)]) == 2
        assert "would be overwritten" in capsys.readouterr().err.replace("\n", " ")
        assert (place / "report.html").read_bytes() == before


def test_a_figure_of_one_run_is_named(results):
    one, two = (replace(result) for result in results)
    found = [with_figures(one, 0), with_figures(two, 1, ("rank", "error"))]
    assert [figure.name for figure in overlaid(("a", "b"), found)] == ["error"]
    assert single(("a", "b"), found) == [("b", "Error")]


def test_runs_without_a_shared_setting(results):
    other = results[1].snapshot
    points = [
        (one, {**setting, "sample_ratio": setting["sample_ratio"] + 9}, theory)
        for one, setting, theory in other.points
    ]
    moved = replace(results[1], snapshot=replace(other, points=points))
    found = Comparison(("a", "b"), tuple(results), tuple(differences(results[0], moved, "b")))
    assert found.differences == ()
    page = page_html(answer(found))
    assert "share no setting" in page


def test_hostile_labels_are_escaped(results):
    found = compare_runs(results)
    hostile = Comparison((HOSTILE, "b"), found.results, ())
    page = page_html(answer(hostile, (), [HOSTILE]))
    assert page.count("<script>") == 1  # the one that sorts tables
    assert page.count("&lt;/script&gt;&lt;script&gt;alert(1)") >= 3
    assert "49" not in page.split("<body>")[1].split("<table")[0]


def test_a_run_of_an_older_version_and_one_that_is_not_finished(tmp_path):
    old = tmp_path / "old"
    old.mkdir()
    (old / "study.sqlite").write_bytes(gzip.decompress(STORED.read_bytes()))
    result = solvable.load(old)
    partial = replace(result.snapshot, tasks=result.snapshot.tasks[::2])
    found = compare_runs([result, replace(result, snapshot=partial)])
    assert not found.results[1].complete
    assert {row.pairing for row in found.differences} == {"same records"}
    assert not any(row.differs for row in found.differences)
    page = page_html(answer(found))
    done = result.planned - found.results[1].missing
    assert f"{done} of {result.planned}" in page


def test_a_run_without_any_result(results):
    result = results[0]
    empty = replace(result, snapshot=replace(result.snapshot, tasks=[]))
    found = compare_runs([result, empty])
    assert found.differences == ()
    assert found.figure_names == []


def test_the_differences_fit_100_columns_with_long_labels():
    long = "dimension=16 samples=40,80,160 noise=0...."
    settings = [{"sample_ratio": 0.277778, "regularization": k, "samples": 40} for k in (0.1, 0.2)]
    rows = [
        Difference(run, setting, metric, 0.0, -5e-9, -4.95e-9, -5.02e-7, 4.92e-7, 0.5, pairing, n)
        for run in (long, f"{long} (2)")
        for setting in settings
        for metric, pairing, n in (("effective_noise", "unpaired", 3), ("gcv_test_error", "paired", 3))
    ]  # fmt: skip
    tables = difference_tables(rows, details=False)
    assert len(tables) == 2
    assert max(table.width for table in tables) <= 100
    assert max(len(line) for table in tables for line in table.title.splitlines()) <= 100
    many = difference_tables(rows * 10, details=False)
    assert sum(len(table.rows) for table in many) == 40
    assert "--details" in many[0].title
