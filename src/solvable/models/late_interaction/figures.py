"""Figures of late interaction: overlaps, pooled vectors, nDCG of pipelines, spectra of their kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.curves import Axis, Curve, varying
from solvable.frame.panels import Panel
from solvable.frame.points import Point
from solvable.frame.traces import Trace
from solvable.models.late_interaction.maxima import max_moments
from solvable.plots.figure import Figure, Series


def spectral(curve: Curve) -> bool:
    """Return True for curves of the spectral estimator."""
    return bool(curve.setting.pipeline == "none")


def trained(curve: Curve) -> bool:
    """Return True for curves of a pipeline."""
    return not spectral(curve)


def limit(curves: Sequence[Curve]) -> list[Series]:
    """Pooled fraction in the limit of many directions, 1 / (L_d Var max)."""
    ends = [int(curve.x[end]) for curve in curves for end in (0, -1)]
    lengths = np.unique(np.geomspace(min(ends), max(ends), 25).round().astype(int))
    values = [1 / (length * max_moments(int(length)).variance) for length in lengths]
    return [Series("many directions", lengths, values, "dashed", colour=1)]


def ceiling(curves: Sequence[Curve]) -> list[Series]:
    """Predicted nDCG of the pooled teacher, as a horizontal line over all costs."""
    points = [point for curve in curves for point in curve.points]
    costs = [float(point.mean("multi_vector_documents")) for point in points]
    level = float(points[0].predicted("pooled_ndcg"))
    return [Series("pooled teacher", [min(costs), max(costs)], [level] * 2, "dashed", colour=4)]


def rank_of_eigenvalue(point: Point) -> np.ndarray:
    """Ranks of the eigenvalues of a kernel, from 1."""
    return np.arange(1.0, point.mean("start_eigenvalues").size + 1)


def true_eigenvalues(point: Point) -> np.ndarray:
    """Eigenvalues of the teacher's kernel of trace 1; NaN above its rank, up to the student's width."""
    rank = rank_of_eigenvalue(point)
    strengths = np.where(rank <= point.setting.rank, rank ** -float(point.setting.decay), np.nan)
    return np.asarray([strengths / np.nansum(strengths)] * point.replicates)


# fmt: off
LABELS = Panel(
    "labels", "Labels differ in the queries that they need", "mean squared overlap",
    [Trace("squared_overlap", "", mean=True)],
    "Squared overlap of the learned with the true directions, averaged over directions, for each kind of "
    "label. Best document against the second best: the slowest label.",
    overlay=("label",), when=spectral, y_range=(-0.02, 1.02),
)


def labels(curves: Sequence[Curve]) -> list[Figure]:
    """Compare kinds of labels, in studies with several kinds."""
    return LABELS(curves) if "label" in varying([c for c in curves if spectral(c)]) else []


PANELS = (
    Panel(
        "overlap", "Directions appear one after another",
        "squared overlap with the true direction", [Trace("squared_overlap", "direction")],
        "Eigenvectors of the label-weighted moment of summed tokens. Lines: predictions at this "
        "dimension. Points: measurements with standard errors. Vertical lines: predicted thresholds.",
        markers={"threshold_queries": "threshold"}, when=spectral, y_range=(-0.02, 1.02),
    ),
    labels,
    Panel(
        "pooled", "Pooled vectors see less of longer documents", "share of the variance of scores",
        [Trace("pooled_fraction", "pooled")],
        "Part of the variance of MaxSim scores of a query's documents that mean-pooled documents "
        "explain. Dashed: limit of many directions of equal strength.",
        along=Axis("document_tokens", "tokens of a document", resolution=25),
        at=lambda places: places[-1:], when=spectral, also=limit, y_scale="log",
    ),
    Panel(
        "ndcg", "MaxSim training passes the ceiling of pooled vectors", "nDCG@10",
        [Trace("ndcg", "", theory=None)],
        "nDCG on fresh queries after all three phases, against queries of the first phase. dense: all "
        "phases dense; a: distillation with MaxSim; b: supervision as well; c: all phases. Dashed: "
        "predicted nDCG of the pooled teacher, the ceiling of dense models.",
        overlay=("pipeline",), when=trained, y_range=(0.0, 1.02),
        x_label="queries of the first phase",
        once=[Trace("pooled_ndcg", "pooled teacher", measured=False, dashed=True, colour=4)],
    ),
    Panel(
        "cost", "nDCG against the cost of MaxSim phases", "nDCG@10", [Trace("ndcg", "", theory=None)],
        "Cost: documents encoded in phases with MaxSim scores, on top of dense phases. Points of a "
        "pipeline differ in the queries of the first phase. Dashed: predicted ceiling of dense models.",
        overlay=("pipeline",), when=lambda curve: curve.setting.pipeline in {"a", "b", "c"},
        against="multi_vector_documents", x_label="documents encoded in MaxSim phases",
        x_scale="log", y_range=(0.0, 1.02), also=ceiling,
    ),
    Panel(
        "spectrum", "Spectrum of the kernel through the phases", "eigenvalue / trace",
        [
            *(Trace(f"{stage}_eigenvalues", name, theory=None, colour=colour)
              for colour, (stage, name) in enumerate((
                  ("start", "before training"), ("unsupervised", "first phase"),
                  ("supervised", "supervision"), ("distillation", "distillation")))),
            Trace("", "teacher", theory=None, dashed=True, colour=4, value=true_eigenvalues),
        ],
        "Eigenvalues of the student's kernel, of trace 1, before training and after each phase.",
        when=trained, against=rank_of_eigenvalue, at=lambda places: places[-1:],
        x_label="index of the eigenvalue (largest first)",
        y_scale="log",
    ),
)
# fmt: on
