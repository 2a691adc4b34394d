"""Maps: cells, colour scale and colour bar in every back end."""

import numpy as np
import pytest

from solvable.answers.small_pictures import small_picture
from solvable.errors import InvalidParameter
from solvable.plots import Figure, Map
from solvable.plots.figure_data import figure_data
from solvable.plots.matplotlib_backend import draw_matplotlib
from solvable.plots.palette import map_colour
from solvable.plots.paper import draw_paper
from solvable.plots.plotly_backend import plotly_parts
from solvable.plots.recording_backend import record

VALUES = np.array([[1.0, 10.0, np.nan], [100.0, -1.0, 3.0]])


def figure(**options):
    drawn = Map([1, 10, 100], [0, 1], VALUES, "error", **options)
    return Figure("m", "Title", "k", "row", [], x_scale="log", map=drawn)


def luminance(colour):
    value = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_edges_lie_between_the_centres_on_the_scale_of_the_axis():
    (call,) = record(figure()).named("cells")
    np.testing.assert_allclose(call["cells"].x, 10.0 ** np.array([-0.5, 0.5, 1.5, 2.5]))
    np.testing.assert_allclose(call["cells"].y, [-0.5, 0.5, 1.5])
    frame = record(figure()).named("begin")[0]["frame"]
    np.testing.assert_allclose(frame.x_limits, 10.0 ** np.array([-0.5, 2.5]))


def test_a_logarithmic_scale_leaves_cells_at_or_below_zero_empty():
    (call,) = record(figure(scale="log")).named("cells")
    assert np.isnan(call["cells"].values[1, 1])
    np.testing.assert_allclose(call["cells"].limits, (1.0, 100.0))


def test_lightness_of_the_colours_rises_evenly():
    # Lightness of CIE Lab: differences between neighbouring colours are equal to 20 %.
    lightness = [
        116 * luminance(map_colour(place)) ** (1 / 3) - 16 for place in np.linspace(0, 1, 6)
    ]
    steps = np.diff(lightness)
    assert (steps > 0).all()
    np.testing.assert_allclose(steps, steps.mean(), rtol=0.2)


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_back_ends_draw_the_recorded_cells(scale):
    drawn = figure(scale=scale)
    (call,) = record(drawn).named("cells")
    cells = call["cells"]
    axes = draw_matplotlib(drawn).axes[0]
    (mesh,) = [part for part in axes.collections if hasattr(part, "get_coordinates")]
    np.testing.assert_allclose(np.ma.filled(mesh.get_array(), np.nan), cells.values)
    assert axes.child_axes[0].get_ylabel() == "error"
    (trace,) = [part for part in plotly_parts(drawn)["data"] if part["type"] == "heatmap"]
    np.testing.assert_allclose(trace["customdata"], cells.values)
    shades = np.log10(cells.values) if scale == "log" else cells.values
    np.testing.assert_allclose(trace["z"], shades)
    assert trace["colorbar"]["title"]["text"] == "error"
    paper = draw_paper(drawn, 3.4)
    bar = paper.axes[0].child_axes[0].get_window_extent()
    assert bar.x1 < 72 * 3.4  # inside the column
    assert small_picture(drawn).count("<rect") == np.isfinite(cells.values).sum()


def test_numbers_of_a_map_are_returned():
    data = figure_data(figure())
    np.testing.assert_allclose(data.map.values, VALUES)
    pytest.importorskip("pandas")
    frame = data.to_dataframe()
    assert len(frame) == VALUES.size
    assert frame.loc[frame.x == 100, "value"].tolist()[1] == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("drawn", "words"),
    [
        (Map([1, 2], [1], np.ones((2, 2)), "v"), "2 columns, 1 rows"),
        (Map([2, 1], [1], np.ones((1, 2)), "v"), "increasing order"),
        (Map([1, 2], [1], np.ones((1, 2)), "v", limits=(1.0, 1.0)), "Omit them"),
    ],
)
def test_maps_that_do_not_fit_together_are_refused(drawn, words):
    with pytest.raises(InvalidParameter, match=words):
        record(Figure("m", "t", "x", "y", [], map=drawn))
