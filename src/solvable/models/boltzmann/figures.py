"""Figures of Boltzmann machines: lines are theory, points are measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from solvable.frame.conditions import above
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


def ranked(what: str) -> Callable[[BoltzmannParameters], Sequence[str]]:
    """Return trace names by the position of each spike, for figures in which spikes vary."""

    def names(setting: BoltzmannParameters) -> Sequence[str]:
        count = len(setting.strengths)
        return [what] if count == 1 else [f"{what}, spike {k + 1}" for k in range(count)]

    return names


def fitted(curve: Curve) -> bool:
    """Return True for curves of machines trained to convergence."""
    return bool(curve.setting.steps == 0)


def entries(setting: BoltzmannParameters) -> Sequence[str]:
    """Return names of the entries of the matrix of overlaps."""
    return [
        f"unit {unit + 1}, spike {strength:.3g}"
        for unit in range(setting.hidden_units)
        for strength in setting.strengths
    ]


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
        [
            Trace("overlap", names=ranked("machine")),
            Trace("pca_overlap", names=ranked("components"), colour=lambda s: len(s.strengths)),
            Trace("bayes_overlap", names=ranked("Bayes"), measured=False, dashed=True),
        ],
        "Cosine of each spike with the weights, and with the principal components of the same samples, "
        "at a fixed sample ratio; dashed: Bayes-optimal. Vertical line: threshold of components.",
        along=Axis("spike", "largest spike variance / noise variance", value=lambda s: s.strength),
        markers={"threshold_spike": "threshold"},
        y_range=(-0.02, 1.02),
    ),
    Panel(
        "overlap-by-step",
        "Overlap of each unit with each spike against steps",
        "overlap of unit and spike",
        [Trace("overlap_matrix", names=entries)],
        "Cosine of each unit with each spike after a number of steps from the same start. Lines: state "
        "evolution of message passing, or mean-field theory of gradient ascent.",
        along=Axis("steps", "steps of the algorithm"),
        where={"steps": above(0)},
        x_scale="linear",
        y_range=(-0.3, 1.02),
    ),
    Panel(
        "partition-function",
        "Partition function of binary visible units against the dimension",
        "limit of log Z minus log Z",
        [Trace("partition_gap", "")],
        "Limit of log Z minus the exact log Z of the fitted weights. Line: first order in 1/d.",
        along=Axis("dimension", "dimension d"),
        when=fitted,
        x_scale="log",
        y_scale="log",
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
