"""Numbers of a figure as arrays, rows as flat columns, and figures in notebooks."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.plots.displayed import Shown
from solvable.plots.figure_data import figure_data
from solvable.plots.frames import flat_rows
from solvable.systems.base import Figure, Marker, Series

FIGURE = Figure(
    "error",
    "Test error",
    "samples n",
    "error",
    [
        Series("theory", [1.0, 2.0], [0.5, np.nan]),
        Series("measured", [1, 2], [0.4, -1], "points", error=[0.1, np.nan]),
        Series("bars", [0, 1, 3], [5, 6], "histogram"),
    ],
    "A caption.",
    markers=[Marker(1.5, "edge"), Marker(9, "")],
    y_scale="log",
)


class Result(Shown, view=__name__):
    """A result with one figure and a list."""


def line(found):
    return "result"


def tables(found):
    return []


def rows(found):
    return [{"n": 1, "values": [1.0, 2.0]}, {"n": 2, "values": [3.0]}]


def figures(found):
    return [FIGURE]


def test_series_are_read_only_arrays() -> None:
    data = Result().figure_data("error")
    theory, measured, bars = data.series
    assert (theory.label, theory.kind, measured.kind, bars.kind) == (
        "theory", "line", "points", "histogram",
    )  # fmt: skip
    np.testing.assert_array_equal(theory.y, [0.5, np.nan])
    np.testing.assert_array_equal(theory.error, [np.nan, np.nan])
    # a value that the logarithmic axis cannot show is included
    np.testing.assert_array_equal(measured.y, [0.4, -1])
    np.testing.assert_array_equal(measured.error, [0.1, np.nan])
    np.testing.assert_array_equal(bars.x, [0, 1, 3])
    assert data.markers == ((1.5, "edge"), (9.0, ""))
    assert (data.x_label, data.y_scale, data.caption) == ("samples n", "log", "A caption.")
    with pytest.raises(ValueError, match="read-only"):
        theory.y[0] = 1


def test_numbers_as_a_frame() -> None:
    pytest.importorskip("pandas")
    frame = figure_data(FIGURE).to_dataframe()
    assert list(frame["series"]) == ["theory"] * 2 + ["measured"] * 2 + ["bars"] * 2
    assert frame["x_end"][4:].tolist() == [1, 3]
    assert frame["x_end"][:4].isna().all()
    assert len(figure_data(Figure("f", "t", "x", "y", [])).to_dataframe()) == 0


def test_unknown_figures_and_styles_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="error"):
        Result().figure_data("errors")
    with pytest.raises(InvalidParameter, match="paper"):
        Result().figure("error", style="papers")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="Leave out one"):
        Result().figure("error", style="report", width=3.4)


def test_a_width_or_the_style_chooses_the_layout_of_papers() -> None:
    assert Result().figure("error", width=2).get_size_inches()[0] == pytest.approx(2)
    assert Result().figure("error", style="paper").get_size_inches()[0] == pytest.approx(3.4)
    report = Result().figure("error")
    assert report.get_size_inches()[0] > 6
    assert "Test error" in [text.get_text() for text in report.axes[0].texts]


def test_lists_are_left_out_or_have_a_column_for_each_entry() -> None:
    table = [
        {"a": 1, "b": [1, 2], "c": "x", "d": None},
        {"a": 2, "b": (3,), "c": "y", "d": [4]},
        {"a": 3, "b": float("nan"), "c": [], "d": 5},
    ]
    assert [list(row) for row in flat_rows(table, arrays=False)] == [["a", "c", "d"]] * 3
    full = flat_rows(table, arrays=True)
    assert [list(row) for row in full] == [["a", "b[0]", "b[1]", "b", "c", "d", "d[0]"]] * 3
    assert [row["b[1]"] for row in full] == [2, None, None]
    assert flat_rows([], arrays=True) == []


def test_frames_of_results_leave_lists_out_by_default() -> None:
    pytest.importorskip("pandas")
    assert list(Result().to_dataframe().columns) == ["n"]
    assert list(Result().to_dataframe(arrays=True).columns) == ["n", "values[0]", "values[1]"]


@pytest.mark.slow
def test_a_notebook_shows_a_figure_once() -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    draw = (
        "from solvable.plots import Figure, Series\n"
        "from solvable.plots.paper import draw_paper\n"
        "figure = draw_paper(Figure('f', 't', 'x', 'y', [Series('a', [1, 2], [1, 2])]))\n"
        "figure"
    )
    inline = "%matplotlib inline\nimport matplotlib.pyplot as plt"
    cells = [nbformat.v4.new_code_cell(text) for text in (draw, inline, draw, "figure")]
    book = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute()
    for place in (0, 2, 3):
        (shown,) = book.cells[place].outputs
        assert shown.output_type == "execute_result"
        assert shown.data["image/png"]
