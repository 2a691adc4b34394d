"""Figures of Boltzmann machines: lines are theory, points are measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from solvable.frame.curves import Axis, Curve
from solvable.frame.panels import Panel
from solvable.frame.traces import Trace
from solvable.models.boltzmann.parameters import BoltzmannParameters


def named(what: str) -> Callable[[BoltzmannParameters], Sequence[str]]:
    """Return trace names for each spike; a single spike has no number."""

    def names(setting: BoltzmannParameters) -> Sequence[str]:
        strengths = setting.strengths
        if len(strengths) == 1:
            return [what]
        return [f"{what}, spike {strength:.3g}" for strength in strengths]

    return names


def fitted(curve: Curve) -> bool:
    """Return True for curves of machines trained to convergence."""
    return bool(curve.setting.steps == 0)


def spike(setting: BoltzmannParameters) -> float:
    """Spike variance over noise variance."""
    return float(setting.strengths[0])


PANELS = (
    Panel(
        "overlap",
        "Overlap of a Boltzmann machine with the spikes",
        "overlap with the spike",
        [
            Trace("overlap", names=named("machine")),
            Trace("pca_overlap", names=named("components"), colour=lambda s: len(s.strengths)),
            Trace("bayes_overlap", names=named("Bayes"), measured=False, dashed=True),
        ],
        "Cosine of each spike with the weights, and with the principal components of the same samples; "
        "dashed: Bayes-optimal. No line where the likelihood has many maxima. Vertical lines: thresholds "
        "of principal components.",
        markers={"threshold_ratio": "threshold"},
        y_range=(-0.02, 1.02),
    ),
    Panel(
        "overlap-by-spike",
        "Overlap against spike strength",
        "overlap with the spike",
        [Trace("overlap", "", mean=True)],
        "Cosine between the weights and a single spike, at a fixed sample ratio.",
        along=Axis("spike", "spike variance / noise variance", value=spike),
        when=lambda curve: len(curve.setting.strengths) == 1,
        y_range=(-0.02, 1.02),
    ),
    Panel(
        "norm",
        "Norm of the weights",
        "squared norm per visible unit",
        [Trace("norm", "norm")],
        "Squared norm of the weights per visible unit.",
    ),
    Panel(
        "stability",
        "Stability of the maximum",
        "replicon",
        [Trace("replicon", "replicon")],
        "Growth of a squared small change in one step of message passing. Above 1 the likelihood has "
        "many maxima and no overlap is predicted.",
        when=fitted,
        y_scale="log",
    ),
)
