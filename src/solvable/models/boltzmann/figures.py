"""Figures of Boltzmann machines: theory as lines, measurement as points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from solvable.frame.curves import Curve
from solvable.frame.panels import Panel, Trace
from solvable.models.boltzmann.parameters import BoltzmannParameters
from solvable.plots.figure import Figure


def named(what: str) -> Callable[[BoltzmannParameters], Sequence[str]]:
    """Names of the entries of a list: one spike needs no number."""

    def names(setting: BoltzmannParameters) -> Sequence[str]:
        strengths = setting.strengths
        if len(strengths) == 1:
            return [what]
        return [f"{what}, spike {strength:.3g}" for strength in strengths]

    return names


def fitted(curve: Curve) -> bool:
    """Curves of machines that are fitted to the end."""
    return bool(curve.setting.steps == 0)


OVERLAP = Panel(
    "overlap",
    "What a Boltzmann machine finds of the spikes",
    "overlap with the direction",
    [
        Trace("overlap", names=named("machine")),
        Trace("pca_overlap", names=named("components")),
        Trace("bayes_overlap", names=named("Bayes"), measured=False, dashed=True),
    ],
    "Cosine of the weights and the direction of each spike, of the principal components beside it, "
    "and the best possible (dashed). No line where the likelihood has many maxima. Vertical lines: "
    "thresholds of principal components.",
    markers={"threshold_ratio": "threshold"},
    y_range=(-0.02, 1.02),
)


def overlaps(curves: Sequence[Curve]) -> list[Figure]:
    """A figure per curve: a colour for each spike, and one more for its principal components."""
    figures = []
    for figure in OVERLAP(curves):
        count = sum(marker.label.startswith("threshold") for marker in figure.markers)
        words = [series.label.split(", theory")[0] for series in figure.series]
        spikes = list(dict.fromkeys(label.partition(", ")[2] for label in words))
        series = []
        for one, label in zip(figure.series, words, strict=True):
            what, _, spike = label.partition(", ")
            shift = len(spikes) if what == "components" else 0
            series.append(replace(one, colour=spikes.index(spike) + shift))
        markers = figure.markers
        if len(spikes) == 1 and count == 1:
            markers = [replace(markers[0], label="threshold")]
        figures.append(replace(figure, series=series, markers=markers))
    return figures


PANELS = (
    overlaps,
    Panel(
        "norm",
        "Norm of the weights",
        "squared norm per visible unit",
        [Trace("norm", "norm")],
        "Weights of a spike alone have the norm of its variance; what is beyond it fits noise.",
    ),
    Panel(
        "stability",
        "Stability of the maximum",
        "growth of a change in a step",
        [Trace("replicon", "replicon")],
        "Above one the likelihood has many maxima, and no overlap is predicted.",
        when=fitted,
        y_scale="log",
    ),
)
