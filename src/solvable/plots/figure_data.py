"""The numbers of a figure as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from solvable.plots.figure import Figure, Map, Series
from solvable.plots.frames import imported


@dataclass(frozen=True, eq=False)
class SeriesData:
    """One series of a figure; its arrays are read-only.

    Parameters
    ----------
    label : str
        Name in the legend; a prediction and its measurement can have the same one.
    kind : {"line", "dashed", "points", "histogram"}
        Theory is a line (dashed for a variant), measurements are points.
    x : ndarray of float, shape (m,)
        Horizontal coordinates; of a histogram the m = n + 1 edges of the bars.
    y : ndarray of float, shape (n,)
        Values; NaN is a gap.
    error : ndarray of float, shape (n,)
        Standard errors of `y`; NaN where there is none.
    """

    label: str
    kind: Literal["line", "dashed", "points", "histogram"]
    x: np.ndarray
    y: np.ndarray
    error: np.ndarray


@dataclass(frozen=True, eq=False)
class MapData:
    """Values of a map; its arrays are read-only.

    Parameters
    ----------
    label : str
        Label of the colour bar.
    x : ndarray of float, shape (n,)
        Centres of the columns.
    y : ndarray of float, shape (m,)
        Centres of the rows.
    values : ndarray of float, shape (m, n)
        Value of each cell; NaN is an empty cell.
    """

    label: str
    x: np.ndarray
    y: np.ndarray
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class FigureData:
    """Numbers of a figure, as ``result.figure_data(name)`` returns them.

    Parameters
    ----------
    name : str
        Name of the figure.
    title, caption, x_label, y_label : str
        Texts of the figure.
    x_scale, y_scale : {"linear", "log"}
        Scales of the axes.
    series : tuple of SeriesData
        Curves, points and histograms in the order of the legend.
    markers : tuple of (float, str)
        Coordinate and label of each vertical line.
    map : MapData or None
        Coloured cells.

    Notes
    -----
    Values that a logarithmic axis cannot show are included. Backed by
    ``tests/plots/test_figure_data.py``.

    Examples
    --------
    >>> from solvable.plots import Figure, Series
    >>> from solvable.plots.figure_data import figure_data
    >>> curve = Series("error", [10, 20], [0.5, 0.25], "points", error=[0.1, 0.05])
    >>> data = figure_data(Figure("error", "Test error", "samples n", "error", [curve]))
    >>> data.series[0].label, data.series[0].y.tolist(), data.series[0].error.tolist()
    ('error', [0.5, 0.25], [0.1, 0.05])
    """

    name: str
    title: str
    caption: str
    x_label: str
    y_label: str
    x_scale: Literal["linear", "log"]
    y_scale: Literal["linear", "log"]
    series: tuple[SeriesData, ...]
    markers: tuple[tuple[float, str], ...]
    map: MapData | None = None

    def __repr__(self) -> str:
        parts = ", ".join(f"{part.label!r} ({part.kind}, {len(part.y)})" for part in self.series)
        cells = "" if self.map is None else f"; map of {self.map.values.shape}"
        return f"<FigureData {self.name!r}: {parts or 'no series'}; {len(self.markers)} markers{cells}>"

    def to_dataframe(self) -> Any:
        """Return a ``pandas.DataFrame`` with one row per value; a bar has the ends x and x_end.

        A map has one row per cell, with its label as the series, and a further column ``value``.
        """
        rows: list[dict[str, Any]] = []
        for part in self.series:
            ends = part.x[1:] if part.kind == "histogram" else np.full(part.y.shape, np.nan)
            columns = (part.x, ends, part.y, part.error)
            rows += [
                {
                    "series": part.label,
                    "kind": part.kind,
                    "x": x,
                    "x_end": end,
                    "y": y,
                    "error": error,
                }
                for x, end, y, error in zip(*columns, strict=False)
            ]
        columns_of = ["series", "kind", "x", "x_end", "y", "error"]
        if self.map is not None:
            columns_of.append("value")
            rows += [
                {"series": self.map.label, "kind": "map", "x": x, "y": y, "value": value}
                for y, row in zip(self.map.y, self.map.values, strict=True)
                for x, value in zip(self.map.x, row, strict=True)
            ]
        return imported("pandas", "a data frame").DataFrame(rows, columns=columns_of)


def figure_data(figure: Figure) -> FigureData:
    """Return the numbers of a figure."""
    return FigureData(
        figure.name,
        figure.title,
        figure.caption,
        figure.x_label,
        figure.y_label,
        figure.x_scale,
        figure.y_scale,
        tuple(map(_series_data, figure.series)),
        tuple((float(marker.x), marker.label) for marker in figure.markers),
        None if figure.map is None else _map_data(figure.map),
    )


def _map_data(drawn: Map) -> MapData:
    return MapData(drawn.label, _fixed(drawn.x), _fixed(drawn.y), _fixed(drawn.values))


def _series_data(series: Series) -> SeriesData:
    y = _fixed(series.y)
    error = np.full(y.shape, np.nan) if series.error is None else series.error
    return SeriesData(series.label, series.kind, _fixed(series.x), y, _fixed(error))


def _fixed(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return a read-only copy."""
    copy = np.array(values, dtype=float)
    copy.flags.writeable = False
    return copy
