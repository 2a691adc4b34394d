"""Figures of sequential feature recovery: theory as lines, measurement as points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.curves import Curve
from solvable.frame.panels import Panel, Trace, grouped, spread_entries
from solvable.models.sequential.predict import bulk_density
from solvable.plots.figure import Figure, Marker, Series


def _ceiling(curve: Curve, _: str, line: np.ndarray) -> np.ndarray:
    """A bound from counting samples, beside kernels: little worth with a quarter of them used up."""
    names = ("polynomial_kernel_normalised_mse", "rbf_kernel_normalised_mse")
    drawn = any(np.isfinite(curve.measured(name)[0]).any() for name in names)
    return np.where(drawn & (line > 0.75 * line[0]), line, np.nan)


def _around_the_learner(series: Sequence[Series]) -> tuple[float, float] | None:
    """Twice the range of the learner's errors."""
    y = next((drawn.y for drawn in series if drawn.label == "layered learner"), None)
    return None if y is None else (0.5 * float(np.nanmin(y)), 2 * float(np.nanmax(y)))


def spectra(curves: Sequence[Curve]) -> list[Figure]:
    """Measured and predicted spectrum of one point of every curve that has any."""
    figures = []
    for group in grouped(curves):
        points = group.curves[0].points
        held = [point for point in points if any(one["spectrum"] for one in point.metrics)]
        if not held:
            continue
        # Where three quarters of the features have left the bulk both kinds of eigenvalues show.
        shares = np.array([np.mean(p.predicted("squared_overlap") > 0.5) for p in held])
        point = held[int(np.argmin(np.abs(shares - 0.75)))]
        stored = [np.asarray(one["spectrum"], float) for one in point.metrics if one["spectrum"]]
        together = np.concatenate(stored)
        counts, edges = np.histogram(together[np.isfinite(together)], bins=60)
        series = [Series("measured", edges, counts / len(stored), "histogram", colour=0)]
        density = bulk_density(point.setting)
        if density is not None:
            count = density.density * stored[0].size * (edges[1] - edges[0])
            series.append(Series("bulk, theory", density.x, count, "line", colour=1))
        ends = np.atleast_1d(point.predicted("bulk_edges"))
        markers = [Marker(float(edge), "bulk edge") for edge in ends[np.isfinite(ends)]]
        overlaps, placed = point.predicted("squared_overlap"), point.predicted("eigenvalues")
        for colour, i in enumerate(spread_entries(placed.size) if overlaps.ndim else []):
            if (
                overlaps[i] > 0.1
                and not ends[0] <= placed[i] <= ends[-1]
                and np.isfinite(placed[i])
            ):
                markers.append(Marker(float(placed[i]), f"feature {i + 1}", colour))
        title = f"Features leave the bulk of the spectrum at n = {point.setting.samples:,}"
        title += f" ({group.words})" if group.words else ""
        labels = ("eigenvalue of the moment operator", "eigenvalues per replicate")
        caption = (
            "Histogram: measured eigenvalues; curve: predicted bulk. Grey lines: predicted edges. "
            "Coloured lines: predicted places of the features."
        )
        name = f"spectrum{group.suffix}"
        figures.append(Figure(name, title, *labels, series, caption, markers, y_scale="log"))
    return figures


# fmt: off
PANELS = (
    Panel(
        "overlap", "Features appear one after another", "squared overlap with the true feature",
        [Trace("squared_overlap", "feature")],
        "Each feature is found at its own sample size. Lines: theory at this finite size. "
        "Points: measured, with standard errors. Vertical lines: predicted thresholds.",
        markers={"threshold_samples": "threshold"}, y_range=(-0.02, 1.02),
    ),
    Panel(
        "error", "The error falls as features are recovered",
        "mean squared error / variance of the label",
        [
            Trace("normalised_mse", "layered learner"),
            Trace("normalised_mse_tail_only", "unrecovered features alone", measured=False, dashed=True,
                  shown=lambda _, __, line: np.where(line > 1e-3, line, np.nan)),
            Trace("polynomial_kernel_normalised_mse", "polynomial kernel", theory=None),
            Trace("rbf_kernel_normalised_mse", "RBF kernel", theory=None),
            Trace("polynomial_kernel_normalised_mse", "best any kernel can do", measured=False,
                  dashed=True, shown=_ceiling, colour=2),
        ],
        "The predicted error counts what is missing of every feature. The dashed curve counts the "
        "unrecovered ones alone and is too low. Kernels see no sequential recovery.",
        y_scale="log", y_range=_around_the_learner,
    ),
    spectra,
)
