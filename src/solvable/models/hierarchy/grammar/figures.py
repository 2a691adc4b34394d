"""Figures of the random hierarchy model: learning curves, statistics of each level, denoising."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from solvable.frame.curves import Axis, Curve
from solvable.frame.panels import Panel
from solvable.frame.traces import Trace
from solvable.models.hierarchy.grammar.parameters import RandomHierarchyParameters
from solvable.plots.figure import Marker


def is_task(task: str, *, zipf: bool = False) -> Callable[[Curve], bool]:
    """Return a function that chooses the curves of a task, with equal or with Zipf rules."""
    return lambda curve: curve.setting.task == task and (curve.setting.zipf > 0) == zipf


def level_names(setting: RandomHierarchyParameters) -> list[str]:
    """Names of the levels of patches, from the one below the label to the leaves."""
    names = [f"level {level}" for level in range(1, setting.depth + 1)]
    names[-1] += " (leaves)"
    return names


def ancestor_names(setting: RandomHierarchyParameters) -> list[str]:
    """Names of the entries of a correlation: distance to the common ancestor, farthest first."""
    heights = range(setting.depth, 0, -1)
    return [f"ancestor {h} level{'s' if h > 1 else ''} up" for h in heights]


def p_star(curves: Sequence[Curve]) -> list[Marker]:
    """Mark P*, which is 1 on the axis without blanks, and n_c m^L with them."""
    return [Marker(1.0, "n_c m^L" if any(curve.setting.blanks for curve in curves) else "P*")]


def over_p_star(setting: RandomHierarchyParameters) -> float:
    """Training strings over the number P* that this learner needs with blanks."""
    return setting.ratio / float(setting.width) ** (setting.sparsity_power or 0)


def critical_noise(curves: Sequence[Curve]) -> list[Marker]:
    """Mark the noise above which the label of an infinitely deep string cannot be recovered."""
    point = curves[0].points[0]
    return (
        []
        if point.refused
        else [Marker(float(point.predicted("critical_noise")), "critical noise")]
    )


NOISE = Axis("noise_level", "noise level", scale="linear")
EVERY = ("estimator", "positions")

PANELS = (
    Panel(
        "accuracy",
        "Accuracy of learners of a random hierarchy",
        "test accuracy or sensitivity",
        [Trace("test_accuracy", "", theory=None)],
        "Points: accuracy on fresh strings. Line: synonymic sensitivity of the leaves after one gradient "
        "step, which is one half where the signal equals twice the noise, near P*. "
        "Learners that use the hierarchy need a few P*; a kernel needs a share of all strings.",
        overlay=EVERY,
        once=[Trace("leaf_sensitivity", "sensitivity after one step", colour=-1)],
        markers=p_star,
        when=is_task("classification"),
        y_range=(-0.02, 1.05),
    ),
    Panel(
        "sensitivity",
        "Synonymic sensitivity after one gradient step",
        "sensitivity to a synonym / to another patch",
        (),
        "Squared distance of the gradients of two synonyms over that of two random patches. If their "
        "symbols were known, levels near the label would need fewer strings.",
        overlay=EVERY,
        once=[Trace("synonymic_sensitivity", names=level_names)],
        when=is_task("classification"),
        markers=p_star,
        y_range=(-0.02, 1.05),
    ),
    Panel(
        "signal-and-noise",
        "Signal and noise of the label statistics of a patch",
        "mean squared distance",
        (),
        "Noise (lines and points): squared error of the label frequencies of a patch. Signal (dashed): "
        "squared distance of the label probabilities of two patches with different parents.",
        overlay=EVERY,
        once=[Trace("noise", names=level_names), Trace("signal", names=level_names, dashed=True)],
        when=is_task("classification"),
        markers=p_star,
        y_scale="log",
    ),
    Panel(
        "level-accuracy",
        "Which levels of the hierarchy are learned",
        "accuracy of the inferred symbols",
        [Trace("level_accuracy", names=level_names, theory=None)],
        "Share of patches of each level whose parent is inferred correctly. At level 1 the parent is the "
        "label.",
        when=lambda curve: (
            is_task("classification")(curve)
            and curve.setting.estimator in ("layerwise", "count-cluster")
        ),
        markers=p_star,
        y_range=(-0.02, 1.05),
    ),
    Panel(
        "blanks",
        "Blanks multiply the strings that a learner needs",
        "test accuracy",
        [Trace("test_accuracy", "", theory=None)],
        "Accuracy on fresh strings against the number of strings over P* = (s_0 + 1)^k n_c m^L, with "
        "the power k of each learner.",
        along=Axis("sample_ratio", "sample ratio N/P*", value=over_p_star),
        overlay=("blanks",),
        when=lambda curve: (
            is_task("classification")(curve)
            and curve.setting.blanks > 0
            and curve.setting.sparsity_power is not None
        ),
        markers=lambda curves: [Marker(1.0, "P*")],
        y_range=(-0.02, 1.05),
    ),
    Panel(
        "zipf",
        "Rules with a power law are learned one after another",
        "test error",
        [Trace("test_error", "")],
        "Line: share of strings with a rule that is too rare to be learned.",
        overlay=("estimator", "positions", "zipf"),
        when=is_task("classification", zipf=True),
        y_scale="log",
    ),
    Panel(
        "correlations",
        "Correlations between the last symbol and earlier ones",
        "root mean square correlation",
        [Trace("correlation", names=ancestor_names)],
        "The sampling noise falls with the number of strings until the correlation of the grammar is "
        "reached: first for near symbols, later for far ones.",
        when=is_task("next-token"),
        y_scale="log",
    ),
    Panel(
        "next-token-loss",
        "The loss of the last symbol falls in steps",
        "cross-entropy (nats)",
        [
            Trace("test_loss", "trained network", theory="loss_envelope"),
            Trace("context_loss", names=ancestor_names, dashed=True),
        ],
        "Points: loss of a trained network on fresh strings. Line: loss that the visible correlations "
        "allow. Dashed: loss of exact inference from a context that ends below each ancestor.",
        overlay=("estimator",),
        when=is_task("next-token"),
    ),
    Panel(
        "boolean",
        "Recovery of a deep quadratic target",
        "probability that all products are found",
        [Trace("recovered", "")],
        "Pairs of signs, pairs of these pairs, and so on, are found level by level. Line: prediction for "
        "independent coefficients.",
        along=Axis("sample_ratio", "sample ratio n/n*", value=lambda setting: setting.ratio),
        overlay=("depth",),
        when=is_task("boolean"),
        y_range=(-0.02, 1.05),
    ),
    Panel(
        "denoising",
        "Belief in the true symbol of each level",
        "mean probability of the true symbol",
        [Trace("level_belief", names=level_names)],
        "Exact inference of each symbol from the noisy leaves below it. Line: the map from level to "
        "level.",
        along=NOISE,
        overlay=("vocabulary", "rules", "branching", "depth"),
        markers=critical_noise,
        when=is_task("denoising"),
        y_range=(-0.02, 1.05),
    ),
    Panel(
        "denoising-accuracy",
        "Accuracy of the denoised symbols of each level",
        "accuracy",
        [Trace("level_accuracy", names=level_names, theory=None)],
        "Symbols of largest probability given the whole noisy string.",
        along=NOISE,
        overlay=("vocabulary", "rules", "branching", "depth"),
        markers=critical_noise,
        when=is_task("denoising"),
        y_range=(-0.02, 1.05),
    ),
)
