"""Figures of Boltzmann machines: theory as lines, measurement as points."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from solvable.frame.curves import Axis, Curve
from solvable.frame.panels import Panel
from solvable.frame.traces import Trace
from solvable.models.boltzmann.parameters import BoltzmannParameters


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


def spike(setting: BoltzmannParameters) -> float:
    """Strength of a single spike."""
    return float(setting.strengths[0])


PANELS = (
    Panel(
        "overlap",
        "What a Boltzmann machine finds of the spikes",
        "overlap with the direction",
        [
            Trace("overlap", names=named("machine")),
            Trace("pca_overlap", names=named("components"), colour=lambda s: len(s.strengths)),
            Trace("bayes_overlap", names=named("Bayes"), measured=False, dashed=True),
        ],
        "Cosine of the weights and the direction of each spike, of the principal components of the same "
        "samples, and the best possible (dashed). No line where the likelihood has many maxima. Vertical "
        "lines: thresholds of principal components.",
        markers={"threshold_ratio": "threshold"},
        y_range=(-0.02, 1.02),
    ),
    Panel(
        "overlap-by-spike",
        "Stronger spikes need fewer samples",
        "overlap with the direction",
        [Trace("overlap", "", mean=True)],
        "Cosine of the weights and the direction of a single spike, at the same samples.",
        along=Axis("spike", "strength of the spike over the noise", value=spike),
        when=lambda curve: len(curve.setting.strengths) == 1,
        y_range=(-0.02, 1.02),
    ),
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
