"""Claims of the random hierarchy model, each with the reason for its tolerance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.conditions import above, at_least, at_most, between, one_of
from solvable.frame.estimates import Estimate, Slope
from solvable.frame.points import Point
from solvable.models.hierarchy.grammar.accuracy import (
    ALONG,
    HIERARCHICAL,
    classifies,
    crossing_ratio,
    reach,
    scarce,
)
from solvable.models.hierarchy.grammar.figures import ancestor_names, level_names
from solvable.models.hierarchy.grammar.network_claims import NETWORK_CLAIMS
from solvable.models.hierarchy.grammar.parameters import AXIS
from solvable.models.hierarchy.grammar.sparse_claims import SPARSE_CLAIMS


def has_statistics(cell: Cell) -> bool:
    """Return True for classification with tuples that are correlated with the label."""
    return cell.setting.task == "classification" and cell.setting.ensemble != "latin"


def finite_vocabulary(cell: Cell) -> float:
    """Relative tolerance for the fluctuations of one grammar around the mean over grammars."""
    return 0.05 + 0.5 / cell.setting.vocabulary


def judged_rules(point: Point) -> bool:
    """Return True for equally likely rules and far more strings than samples."""
    return classifies(point.setting) and scarce(point.setting)


LEARNED = (
    judged_rules,
    # for blanks see the claims of sparse strings
    {"ensemble": "first", "estimator": one_of(*HIERARCHICAL), "blanks": 0},
)


def rise(points: Sequence[Point]) -> tuple[float, float] | None:
    """Accuracy above 4 P* minus that below P*/4, in units of the largest possible difference."""
    above, below = (
        [p.mean("test_accuracy") for p in points if chosen(p.setting.ratio)]
        for chosen in (lambda ratio: 4 <= ratio <= 64, lambda ratio: ratio <= 0.25)
    )
    if not above or not below:
        return None
    return float(np.mean(above) - np.mean(below)) / reach(points[0].setting), 1.0


def lead_over_kernel(points: Sequence[Point]) -> tuple[float, float] | None:
    """Mean lead of hierarchical learners over the kernel, in units of perfect minus chance accuracy."""
    kernel = [p.mean("test_accuracy") for p in points if p.setting.estimator == "kernel"]
    others = [p.mean("test_accuracy") for p in points if p.setting.estimator in HIERARCHICAL]
    if not kernel or not others:
        return None
    return float(np.mean(others) - np.mean(kernel)) / reach(points[0].setting), 1.0


def crossings(points: Sequence[Point]) -> list[tuple[float, float]]:
    """P* and the crossing in units of P*, for each curve that crosses between its points."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        fields = {k: v for k, v in point.parameters.items() if k not in ALONG}
        groups.setdefault(str(fields), []).append(point)
    pairs = [(group[0].setting.threshold, crossing_ratio(group)) for group in groups.values()]
    return [(threshold, ratio) for threshold, ratio in pairs if ratio is not None]


def mean_crossing(points: Sequence[Point]) -> tuple[float, float] | None:
    """Geometric mean over settings of the crossing in units of P*."""
    pairs = crossings(points)
    return (float(np.exp(np.mean([np.log(ratio) for _, ratio in pairs]))), 1.0) if pairs else None


def threshold_law(points: Sequence[Point]) -> tuple[float, float] | None:
    """Slope of the logarithm of the crossing sample size against that of P*."""
    pairs = np.array(crossings(points))
    if len(pairs) < 4 or np.ptp(np.log(pairs[:, 0])) < np.log(16):
        return None
    x = np.log(pairs[:, 0])
    return float(np.polyfit(x, x + np.log(pairs[:, 1]), 1)[0]), 1.0


def many_rules_left(point: Point) -> bool:
    """Return True for Zipf rules of which at most half of the strings need an unknown one."""
    return point.setting.zipf > 0 and float(point.predicted("test_error")) < 0.5 * reach(
        point.setting
    )


def distinct_laws(points: Sequence[Point]) -> tuple[float, float] | None:
    """Measured and predicted share of grammars whose symbols have different laws, mean over levels."""
    rows = [(p.mean("distinct_laws"), p.predicted("distinct_laws")) for p in points]
    if any(np.ndim(levels) == 0 for row in rows for levels in row):  # not measured or not predicted
        return None
    measured, expected = np.mean(np.array(rows)[..., 1:], axis=(0, 2))
    return float(measured), float(expected)


def bounded(cell: Cell) -> bool:
    """Return True if each patch is frequent enough for the bound of Lemma 18 on its label law."""
    setting = cell.setting
    chosen = has_statistics(cell) and setting.ensemble == "first" and not setting.zipf
    return chosen and cell.entry != 0 and cell.predicted("worst_error_bound") <= 0.5


SETTINGS = ("vocabulary", "rules", "branching", "depth", "classes")

CLAIMS = (
    Agreement("synonymic-sensitivity",
        "After one gradient step synonyms of each level differ as little as predicted.",
        "synonymic_sensitivity", "derivations/hierarchy (8)",
        within=lambda cell: 0.02 + 0.3 / cell.setting.vocabulary,
        because="0.02, plus 0.3/V for the fluctuations of one grammar around the mean over grammars.",
        where=has_statistics, entry=level_names,
        scatter=lambda cell: cell.expected * (1 - cell.expected) + 0.02, power=0.2,
        missing="no point has task=classification and an ensemble with signal"),
    Agreement("signal",
        "The label laws of patches with different parents differ as predicted on each level.",
        "signal", "derivations/hierarchy (5)", within=finite_vocabulary, relative=True,
        because="5 %, plus 0.5/V: one grammar differs from the mean over grammars.",
        where=(has_statistics, lambda cell: cell.entry != 0), entry=level_names, power=0.2,
        missing="no point has task=classification, an ensemble with signal and depth above 1"),
    Agreement("noise",
        "The label frequencies of a patch scatter as predicted on each level.",
        "noise", "derivations/hierarchy (6)", within=0.04, relative=True,
        because="4 %: the label law of a patch is not the same for all patches.",
        where=has_statistics, entry=level_names, power=0.15,
        missing="no point has task=classification, an ensemble with signal and depth above 1"),
    Estimate("weakly-identifiable",
        "The label laws of all pairs of patches with different parents are at least as far apart as "
        "proven, in all grammars but those in which two symbols have the same law.",
        "arXiv:2601.19756, Proposition 19; derivations/hierarchy (33)",
        estimate=distinct_laws, apart=(*ALONG, "estimator", "positions"), within=0.05,
        because="0.05: in small vocabularies laws also coincide by relations between more symbols.",
        where=(
            {"task": "classification", "ensemble": "first", "depth": above(1),
             "vocabulary": at_most(256), "rules": at_most(256)},
            lambda point: point.setting.n_classes == point.setting.vocabulary,
        ),
        missing="needed: task=classification, ensemble=first, as many classes as symbols, depth above 1"),
    Agreement("worst-error",
        "The worst error of a label law is below the corrected bound of Lemma 18.",
        "worst_error", "derivations/hierarchy (21)",
        expected="worst_error_bound", kind="at most", relative=True, within=0.05, power=0.7,
        because="5 %: the bound holds with probability 0.95.", where=bounded, entry=level_names,
        missing="no point has 8 |P| log(80 |P|) strings for |P| patches; raise sample_ratio"),
    Estimate("hierarchy-learned",
        "The accuracy rises from near chance at a quarter of P* to near 1 at four times P*.",
        "arXiv:2307.02129, Equation 10; derivations/hierarchy (7)",
        estimate=rise, apart=ALONG, fewest=2, within=0.35, power=0.5,
        because="0.35: some of the rise is below P*/4 (single patches) and some above 4 P*.",
        where=LEARNED,
        missing="needed: layerwise, count-cluster or cnn at sample ratios up to 0.25 and from 4"),
    Estimate("lead-over-kernels",
        "Where hierarchical learners are accurate, tuned kernels are not.",
        "arXiv:2307.02129, Figure 14; derivations/hierarchy (7), (26)",
        estimate=lead_over_kernel, apart=(*ALONG, "estimator", "positions"), fewest=2, within=0.55,
        power=0.6,
        because="0.55: kernels use the statistics of single patches, and are therefore above chance.",
        where=(judged_rules, {"ratio": between(4, 64), "depth": at_least(3), "ensemble": "first"}),
        missing="needed: kernel and a hierarchical estimator at depth 3 or more and a sample ratio of at "
        "least 4, far from all strings"),
    Estimate("threshold",
        "The accuracy is halfway between chance and 1 near P*, in the mean over grammars of all sizes.",
        "arXiv:2307.02129, Equation 10; derivations/hierarchy (7)",
        estimate=mean_crossing, apart=(*ALONG, *SETTINGS), fewest=4, within=0.6, power=0.7,
        because="0.6: P* is where the signal equals twice the noise; learners differ in prefactors.",
        where=LEARNED,
        missing="needed: four points of layerwise, count-cluster or cnn, on both sides of P* and far "
        "from all strings; run with --preset scaling"),
    Estimate("threshold-law",
        "The number of strings at which the hierarchy is learned is proportional to n_c m^L.",
        "arXiv:2601.19756, Theorem 7; derivations/hierarchy (7)",
        estimate=threshold_law, apart=(*ALONG, *SETTINGS), fewest=8, within=0.2, power=0.3,
        because="0.2: logarithms and constants of a learner depend on the size of the grammar.",
        where=LEARNED,
        missing="fewer than four grammars whose P* span a factor of 16; run with --preset scaling"),
    Slope("zipf-exponent",
        "With rules of Zipf exponent a the error falls as N^(-a / (1 + a)), as far as rules are left.",
        "derivations/hierarchy (19)",
        metric="test_error", along=AXIS.parameter, ignore=AXIS.ignore, fewest=3, span=4, within=0.15,
        power=0.4,
        because="0.15: the error is not yet a power law where several rules are learned together.",
        where=many_rules_left,
        missing="no curve with zipf above 0 has three points with a predicted error below 0.5; run with "
        "--preset zipf"),
    Agreement("correlations",
        "The correlations of the last symbol with earlier ones have the predicted plateaus and noise.",
        "correlation", "derivations/hierarchy (13), (14)",
        within=finite_vocabulary, relative=True,
        because="5 %, plus 0.5/V for the fluctuations of one grammar around the mean over grammars.",
        where={"task": "next-token", "vocabulary": at_least(16)}, entry=ancestor_names, power=0.2,
        missing="run with --preset language"),
    Agreement("context-loss",
        "A context that ends below an ancestor leaves the predicted uncertainty about the last symbol.",
        "context_loss", "derivations/hierarchy (16)",
        within=0.06, because="0.06 nats: numbers of compatible symbols scatter within one grammar.",
        where={"task": "next-token", "vocabulary": at_least(16)}, entry=ancestor_names, power=0.2,
        missing="run with --preset language"),
    Agreement("denoising",
        "The mean belief in the true symbol of each level follows the map from level to level.",
        "level_belief", "derivations/hierarchy (17)", within=0.035,
        because="0.035: the map replaces the beliefs of a level by their mean.",
        where=(
            {"task": "denoising", "vocabulary": at_least(16)},
            lambda cell: 0 < cell.setting.noise_level < 1,
        ),
        entry=level_names, power=0.2,
        missing="no point has task=denoising and at least 16 symbols; run with --preset language"),
    Agreement("products-found",
        "All products of a deep quadratic target are found with the predicted probability.",
        "recovered", "arXiv:2601.19756, Appendix C; derivations/hierarchy (23)", within=0.1, power=0.3,
        because="0.1: estimated coefficients are treated as independent.",
        where={"task": "boolean", "depth": at_least(3)},
        scatter=lambda cell: float(np.sqrt(cell.expected * (1 - cell.expected) + 0.001)),
        missing="run with --preset boolean"),
    *NETWORK_CLAIMS,
    *SPARSE_CLAIMS,
)  # fmt: skip
