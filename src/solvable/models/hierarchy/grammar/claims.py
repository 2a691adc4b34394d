"""Claims of the random hierarchy model, each with the reason for its tolerance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.conditions import above, at_least, at_most, between, inside, not_, one_of
from solvable.frame.estimates import Estimate, Slope
from solvable.frame.points import Point
from solvable.models.hierarchy.grammar.figures import ancestor_names, level_names
from solvable.models.hierarchy.grammar.parameters import AXIS, RandomHierarchyParameters

HIERARCHICAL = ("layerwise", "count-cluster", "cnn")
"""Estimators that learn the hierarchy, level by level or as a deep network."""

ALONG = (AXIS.parameter, *AXIS.ignore)


SIGNAL = {"task": "classification", "zipf": 0, "ensemble": not_("latin")}
"""Classification with equally likely rules that carry a signal."""


def log_strings(setting: RandomHierarchyParameters) -> float:
    """Logarithm of the number of strings, n_c (m (s_0 + 1)^s)^((s^L - 1) / (s - 1))."""
    choices = (setting.branching**setting.depth - 1) / (setting.branching - 1)
    ways = np.log(setting.rules) + setting.branching * np.log(setting.width)
    return float(np.log(setting.n_classes) + choices * ways)


def scarce(setting: RandomHierarchyParameters) -> bool:
    """Return True if there are at least eight times as many strings as training strings."""
    return bool(np.log(8 * setting.n_samples) <= log_strings(setting))


def reach(setting: RandomHierarchyParameters) -> float:
    """Difference between perfect and chance accuracy."""
    return 1 - 1 / setting.n_classes


def crossing_ratio(points: Sequence[Point], left: float = 0.5) -> float | None:
    """Samples over P* at which a share of the error of chance is left; None outside the points."""
    ordered = sorted(points, key=lambda point: point.setting.ratio)
    x = np.log([point.setting.ratio for point in ordered])
    accuracy = np.array([float(point.mean("test_accuracy")) for point in ordered])
    wanted = 1 - left * reach(points[0].setting)
    above = int(np.argmax(accuracy >= wanted))
    if above == 0:
        return None
    share = (wanted - accuracy[above - 1]) / (accuracy[above] - accuracy[above - 1])
    return float(np.exp(x[above - 1] + share * (x[above] - x[above - 1])))


NETWORK_PAPER = "arXiv:2307.02129"
SETTINGS = ("vocabulary", "rules", "branching", "depth", "classes")


EQUAL = {"task": "classification", "zipf": 0, "blanks": 0}


def correlated_lead(points: Sequence[Point]) -> tuple[float, float] | None:
    """Accuracy with correlated rules minus that with a Latin square, in units of perfect minus chance."""
    accuracy = {p.setting.ensemble: float(p.mean("test_accuracy")) for p in points}
    if not {"first", "latin"} <= accuracy.keys():
        return None
    return (accuracy["first"] - accuracy["latin"]) / reach(points[0].setting), 1.0


def sizes_at(
    points: Sequence[Point], estimator: str, left: float
) -> dict[str, tuple[Point, float]]:
    """First point and logarithm of the strings at which an error is left, for each grammar."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        if point.setting.estimator == estimator:
            key = str([getattr(point.setting, name) for name in SETTINGS])
            groups.setdefault(key, []).append(point)
    found = {key: crossing_ratio(group, left) for key, group in groups.items()}
    return {
        key: (groups[key][0], float(np.log(ratio * groups[key][0].setting.threshold)))
        for key, ratio in found.items()
        if ratio is not None
    }


def factor_per_level(points: Sequence[Point]) -> tuple[float, float] | None:
    """Factor per level by which a network without shared weights needs more strings; expected 2."""
    shared, full = (sizes_at(points, name, 0.5) for name in ("cnn", "fully-connected"))
    rows = [(shared[k][0].setting.depth, full[k][1] - shared[k][1]) for k in shared if k in full]
    depths = np.array([depth for depth, _ in rows], dtype=float)
    if len(rows) < 2 or np.ptp(depths) < 1:
        return None
    return float(np.exp(np.polyfit(depths, [ratio for _, ratio in rows], 1)[0])), 2.0


def power_of_strings(points: Sequence[Point]) -> tuple[float, float] | None:
    """Slope of the logarithm of the strings that a shallow network needs, against that of all strings."""
    rows = [
        (log_strings(point.setting), size)
        for point, size in sizes_at(points, "shallow", 0.1).values()
    ]
    table = np.array(rows).reshape(-1, 2)
    if len(table) < 3 or np.ptp(table[:, 0]) < np.log(64):
        return None
    return float(np.polyfit(table[:, 0], table[:, 1], 1)[0]), 1.0


NETWORK_CLAIMS = (
    Estimate("learning-needs-correlations",
        "A network learns if single symbols are correlated with the label, and not if they are not.",
        f"{NETWORK_PAPER}, Figure 9; derivations/hierarchy (5)", estimate=correlated_lead,
        apart=("ensemble",), fewest=2, within=0.2, power=0.5,
        because="0.2: at a few P* the hierarchy is not learned perfectly.",
        where={**EQUAL, "estimator": "cnn", "ratio": between(4, 64),
               "far more strings than samples": lambda p: scarce(p.setting)},
        missing="needed: estimator=cnn and ensemble=first,latin at a sample ratio of at least 4, far "
        "from all strings; run with --preset quick --set estimator=cnn ensemble=first,latin "
        "vocabulary=6 rules=6 sample_ratio=4"),
    Estimate("factor-of-shared-weights",
        "The factor by which a fully connected network needs more strings than a convolutional one "
        "doubles with each level.", f"{NETWORK_PAPER}, Section IV", estimate=factor_per_level,
        apart=(*ALONG, "estimator", "depth"), fewest=8, relative=True, within=0.2, power=0.6,
        because="20 %: the law is empirical, and crossings are interpolated between few sizes.",
        where={**EQUAL, "ensemble": "first", "estimator": one_of("cnn", "fully-connected")},
        missing="needed: estimator=cnn,fully-connected at two depths, on both sides of their thresholds; "
        "run with --preset networks"),
    Estimate("shallow-networks-need-all-strings",
        "A network of one hidden layer needs a fixed share of all strings of the grammar.",
        f"{NETWORK_PAPER}, Figure 2", estimate=power_of_strings, apart=(*ALONG, *SETTINGS), fewest=9,
        within=0.2,
        power=0.45,  # a deep network would have the power 3/7
        because="0.2: the share depends on the size of the grammar, by a factor of about two.",
        where={**EQUAL, "ensemble": "first", "estimator": "shallow"},
        missing="fewer than three grammars with estimator=shallow whose numbers of strings span a factor "
        "of 64; run with --preset shallow"),
)  # fmt: skip


def sparsity_power(points: Sequence[Point]) -> tuple[float, float] | None:
    """Slope of the log of the crossing sample size against log(s_0 + 1), and the predicted power."""
    groups: dict[int, list[Point]] = {}
    for point in points:
        groups.setdefault(point.setting.width, []).append(point)
    sizes = {width: crossing_ratio(group) for width, group in groups.items()}
    found = [(width, size) for width, size in sizes.items() if size is not None]
    if len(found) < 3:
        return None
    x, y = np.log(np.array(found)).T
    return float(np.polyfit(x, y, 1)[0]), float(points[0].setting.sparsity_power)


SPARSE_CLAIMS = (
    Agreement("leaf-counts",
        "The counts of one leaf contain the predicted share of correlations with the label.",
        "leaf_counts", "derivations/hierarchy (36)", relative=True,
        within=lambda cell: 0.08 + 0.5 / cell.setting.vocabulary,
        because="8 %, plus 0.5/V: one grammar differs from the mean over grammars.",
        where={**SIGNAL, "expected": at_least(1.5)}, power=0.3, missing="raise sample_ratio"),
    Estimate("blanks-multiply-strings",
        "With s_0 blanks per symbol a learner needs (s_0 + 1)^k times as many strings. The power k is 2 "
        "for convolutional networks at any depth and L without shared weights; it is s for tuples that "
        "are counted at all positions together, and s + L - 1 at the first one.",
        "arXiv:2404.10727, Section 6; derivations/hierarchy (35), (36)",
        estimate=sparsity_power, apart=(*ALONG, "blanks"), fewest=6, within=0.45, power=0.3,
        because="0.45: the power of networks is empirical, and crossings are interpolated between few "
        "sizes.",
        where={**SIGNAL, "ensemble": "first", "sparsity_power": not_(None)},
        missing="needed: cnn, locally-connected or count-cluster with positions=first or pooled, at "
        "three numbers of blanks and on both sides of P*; run with --preset sparse"),
)  # fmt: skip


STATISTICS = {"task": "classification", "ensemble": not_("latin")}


def finite_vocabulary(cell: Cell) -> float:
    """Relative tolerance for the fluctuations of one grammar around the mean over grammars."""
    return 0.05 + 0.5 / cell.setting.vocabulary


JUDGED = {**SIGNAL, "far more strings than samples": lambda point: scarce(point.setting)}


# for blanks see the claims of sparse strings
LEARNED = {**JUDGED, "ensemble": "first", "estimator": one_of(*HIERARCHICAL), "blanks": 0}


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
    return cell.entry != 0 and cell.predicted("worst_error_bound") <= 0.5


CLAIMS = (
    Agreement("synonymic-sensitivity",
        "After one gradient step synonyms of each level differ as little as predicted.",
        "synonymic_sensitivity", "derivations/hierarchy (8)",
        within=lambda cell: 0.02 + 0.3 / cell.setting.vocabulary,
        because="0.02, plus 0.3/V for the fluctuations of one grammar around the mean over grammars.",
        where=STATISTICS, entry=level_names,
        scatter=lambda cell: cell.expected * (1 - cell.expected) + 0.02, power=0.2),
    Agreement("signal",
        "The label laws of patches with different parents differ as predicted on each level.",
        "signal", "derivations/hierarchy (5)", within=finite_vocabulary, relative=True,
        because="5 %, plus 0.5/V: one grammar differs from the mean over grammars.",
        where={**STATISTICS, "depth": above(1), "levels below the first": lambda cell: cell.entry != 0},
        entry=level_names, power=0.2),
    Agreement("noise",
        "The label frequencies of a patch scatter as predicted on each level.",
        "noise", "derivations/hierarchy (6)", within=0.04, relative=True,
        because="4 %: the label law of a patch is not the same for all patches.",
        where=STATISTICS, entry=level_names, power=0.15),
    Estimate("weakly-identifiable",
        "The label laws of all pairs of patches with different parents are at least as far apart as "
        "proven, in all grammars but those in which two symbols have the same law.",
        "arXiv:2601.19756, Proposition 19; derivations/hierarchy (33)",
        estimate=distinct_laws, apart=(*ALONG, "estimator", "positions"), within=0.05,
        because="0.05: in small vocabularies laws also coincide by relations between more symbols.",
        where={"task": "classification", "ensemble": "first", "depth": above(1),
               "vocabulary": at_most(256), "rules": at_most(256),
               "as many classes as symbols": lambda p: p.setting.n_classes == p.setting.vocabulary}),
    Agreement("worst-error",
        "The worst error of a label law is below the corrected bound of Lemma 18.",
        "worst_error", "derivations/hierarchy (21)",
        expected="worst_error_bound", kind="at most", relative=True, within=0.05, power=0.7,
        because="5 %: the bound holds with probability 0.95.", entry=level_names,
        where={"task": "classification", "ensemble": "first", "zipf": 0,
               "8 |P| log(80 |P|) strings for |P| patches": bounded}, missing="raise sample_ratio"),
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
        where={**JUDGED, "ratio": between(4, 64), "depth": at_least(3), "ensemble": "first"},
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
        where={
            "task": "denoising", "vocabulary": at_least(16), "noise_level": inside(0, 1),
        },
        entry=level_names, power=0.2,
        missing="run with --preset language"),
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
