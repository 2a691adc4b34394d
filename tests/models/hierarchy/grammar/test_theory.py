"""Signal, noise and sensitivity against exact laws of drawn grammars and against simulations."""

import numpy as np
import pytest
from grammar_laws import grammars, joint_laws, label_laws, mean_square_difference
from scipy.stats import binom

from solvable.errors import InvalidParameter
from solvable.models.hierarchy.grammar.sizes import GrammarSizes
from solvable.models.hierarchy.grammar.theory import (
    inverse_count,
    joint_squares,
    level_thresholds,
    pair_detectability,
    squared_noise,
    squared_signal,
    synonymic_sensitivity,
    threshold_samples,
)
from solvable.models.hierarchy.rules import zipf_law

SETTINGS = [
    (16, 4, 2, 4, 16),
    (8, 2, 2, 4, 8),
    (16, 4, 3, 3, 16),
    (32, 8, 2, 4, 8),
    (8, 8, 2, 3, 8),
]


def sizes_of(setting, ensemble):
    names = ("vocabulary", "rules", "branching", "depth", "classes")
    return dict(zip(names, setting, strict=True)) | {"ensemble": ensemble}


def allowance(values):
    return 4 * values.std(axis=0, ddof=1) / np.sqrt(len(values))


@pytest.mark.parametrize("ensemble", ["first", "uniform"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_signal_is_the_mean_over_grammars(setting, ensemble):
    sizes = sizes_of(setting, ensemble)
    measured = np.array(
        [
            [mean_square_difference(label_laws(joint)[0]) for joint in joint_laws(grammar)]
            for grammar in grammars(150, *setting, ensemble)
        ]
    )
    # The law of frequencies of `uniform` treats symbols as independent: an error of order 1/V.
    systematic = 0.03 * squared_signal(**sizes) if ensemble == "uniform" else 1e-12
    assert (
        abs(measured.mean(axis=0) - squared_signal(**sizes)) <= allowance(measured) + systematic
    ).all()


@pytest.mark.parametrize("ensemble", ["first", "uniform"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_joint_statistics_contract_by_the_exact_factor(setting, ensemble):
    squares = []
    for grammar in grammars(150, *setting, ensemble):
        laws = [(law - law.mean(axis=0)) * law.shape[1] for law in joint_laws(grammar)]
        squares.append([(law**2).sum() / law.shape[1] for law in laws])
    squares = np.array(squares)
    predicted = joint_squares(**sizes_of(setting, ensemble))
    assert (abs(squares.mean(axis=0) - predicted) <= allowance(squares) + 1e-12).all()


def test_contraction_of_symbols_after_the_first_by_drawn_rules():
    # At any position, a signed measure of mean zero on the parents keeps this share of its square.
    for ensemble, s in (("first", 3), ("uniform", 3), ("first", 2)):
        rng = np.random.default_rng(0)
        shares = []
        for grammar in grammars(300, 6, 4, s, 2, 6, ensemble):
            measure = rng.standard_normal(6)
            measure -= measure.mean()
            table = grammar.tables[1]
            image = np.zeros((6, s))
            for p in range(s):
                np.add.at(image[:, p], table[:, :, p].ravel(), np.repeat(measure, 4) / 4)
            shares.append((image**2).sum(axis=0) / (measure**2).sum())
        shares = np.array(shares)
        predicted = GrammarSizes(6, 4, s, 2, 6, ensemble).contractions[1]
        assert (abs(shares.mean(axis=0) - predicted) <= allowance(shares)).all()


@pytest.mark.parametrize(("N", "p"), [(1, 0.3), (3, 0.2), (40, 0.1), (5000, 0.01), (7, 1.0)])
@pytest.mark.parametrize("power", [1, 2, 3])
def test_mean_inverse_of_counts_that_occur(N, p, power):
    n = np.arange(1, N + 1)
    mean, seen = inverse_count(N, p, power)
    assert mean == pytest.approx((binom.pmf(n, N, p) / n.astype(float) ** power).sum(), rel=1e-6)
    assert seen == pytest.approx(1 - (1 - p) ** N, rel=1e-9)


def test_mean_inverse_of_large_and_rare_counts():
    assert inverse_count(1e14, 1e-4)[0] == pytest.approx(1e-10 * (1 + 1e-10), rel=1e-9)
    assert inverse_count(10.0, 1e-12)[0] == pytest.approx(1e-11, rel=1e-6)


def likely_counts(mean):
    """Counts from 1 to ten standard deviations above a mean."""
    return np.arange(1, int(mean + 10 * np.sqrt(mean)) + 20)[:, None]


@pytest.mark.parametrize("ensemble", ["first", "uniform"])
@pytest.mark.parametrize("setting", [(16, 4, 2, 3, 16), (8, 2, 2, 3, 8), (8, 4, 3, 3, 4)])
@pytest.mark.parametrize("ratio", [0.1, 1, 10])
def test_noise_is_that_of_exact_frequencies(setting, ensemble, ratio):
    # Sums over binomial counts of every patch of 60 grammars; nothing is sampled.
    _, m, _, L, classes = setting
    N = int(ratio * threshold_samples(rules=m, depth=L, classes=classes))
    total, seen = np.zeros(L), np.zeros(L)
    for grammar in grammars(60, *setting, ensemble):
        for level, joint in enumerate(joint_laws(grammar)):
            laws, frequency = label_laws(joint)
            n = likely_counts(N * frequency.max() / m)
            weights = binom.pmf(n, N, frequency / m)
            total[level] += ((weights / n).sum(axis=0) * (1 - (laws**2).sum(axis=0))).sum()
            seen[level] += weights.sum()
    predicted = squared_noise(N, **sizes_of(setting, ensemble))
    # |q|² varies between grammars: 1 to 2 % for `first`, 3 % for `uniform`, plus the order 1/V.
    assert np.allclose(predicted, total / seen, rtol=0.045, atol=1e-12)


def centred_counts(grammar, level, N, rng, law=None):
    """Class-centred counts of all first patches of a level, shape (classes, parents, rules)."""
    joint = joint_laws(grammar)[level - 1]
    shares = np.full(grammar.rules, 1 / grammar.rules) if law is None else law
    table = joint[:, :, None] * shares
    counts = rng.multinomial(N, table.ravel()).reshape(table.shape)
    return counts - counts.mean(axis=0)


def measured_sensitivity(setting, ensemble, level, N, law=None):
    """Ratio of the two mean squared distances over 80 grammars, and its standard error."""
    rng = np.random.default_rng(1)
    pairs = []
    for grammar in grammars(80, *setting, ensemble):
        g = centred_counts(grammar, level, N, rng, law)
        synonyms = np.mean([mean_square_difference(g[:, a]) for a in range(g.shape[1])])
        pairs.append((synonyms, mean_square_difference(g.reshape(len(g), -1))))
    top, bottom = np.array(pairs).T
    ratio = top.mean() / bottom.mean()
    return ratio, (top - ratio * bottom).std() / bottom.mean() / np.sqrt(len(top))


@pytest.mark.parametrize("ensemble", ["first", "uniform"])
@pytest.mark.parametrize("setting", [(16, 4, 2, 3, 16), (16, 4, 2, 3, 8)])
@pytest.mark.parametrize("level", [1, 2, 3])
def test_synonymic_sensitivity_of_simulated_counts(setting, ensemble, level):
    P = threshold_samples(rules=4, depth=level, classes=setting[-1])
    for ratio in (0.25, 1, 4):
        N = int(ratio * P)
        measured, error = measured_sensitivity(setting, ensemble, level, N)
        predicted = synonymic_sensitivity(N, **sizes_of(setting, ensemble))[level - 1]
        assert measured == pytest.approx(predicted, abs=4 * error)
        assert error < 0.02


def test_counts_of_unequal_rules_keep_synonyms_apart():
    setting, law = (16, 4, 2, 2, 16), zipf_law(4, 1.0)
    for N in (100, 1_000, 100_000):
        measured, error = measured_sensitivity(setting, "first", 2, N, law)
        predicted = synonymic_sensitivity(N, zipf=1.0, **sizes_of(setting, "first"))[1]
        assert measured == pytest.approx(predicted, abs=4 * error)
    assert predicted > 0.4


def test_noise_of_unequal_rules():
    setting, law, N = (16, 4, 2, 2, 16), zipf_law(4, 1.0), 300
    for ensemble in ("first", "uniform"):
        total = seen = 0.0
        for grammar in grammars(60, *setting, ensemble):
            laws, frequency = label_laws(joint_laws(grammar)[1])
            n = likely_counts(N * frequency.max() * law[0])
            for share in law:
                weights = binom.pmf(n, N, frequency * share)
                total += ((weights / n).sum(axis=0) * (1 - (laws**2).sum(axis=0))).sum()
                seen += weights.sum()
        predicted = squared_noise(N, zipf=1.0, **sizes_of(setting, ensemble))[1]
        assert predicted == pytest.approx(total / seen, rel=0.02)


@pytest.mark.parametrize(
    ("setting", "ratio"),
    [
        ((32, 4, 2, 2, 32), 1),
        ((16, 8, 2, 2, 16), 1),
        ((16, 4, 2, 3, 16), 1),
        ((16, 8, 2, 2, 16), 4),
    ],
)
def test_detectability_of_simulated_pairs(setting, ratio):
    V, m, _, L, classes = setting
    N = int(ratio * threshold_samples(rules=m, depth=L, classes=classes))
    rng = np.random.default_rng(2)
    gaps, variances = [], []
    for grammar in grammars(40, *setting):
        joint = joint_laws(grammar)[-1]
        counts = rng.multinomial(N, np.repeat(joint / m, m, axis=1).ravel()).reshape(classes, -1)
        seen = counts.sum(axis=0) > 0
        laws = counts[:, seen] / counts[:, seen].sum(axis=0)
        parent = np.repeat(np.arange(V), m)[seen]
        gram = laws.T @ laws
        distance = np.diag(gram)[:, None] + np.diag(gram) - 2 * gram
        pairs = np.triu(np.ones_like(gram, dtype=bool), 1)
        same = pairs & (parent[:, None] == parent)
        gaps.append(distance[pairs & ~same].mean() - distance[same].mean())
        variances.append(distance[same].var())
    measured = np.mean(gaps) / np.sqrt(np.mean(variances))
    predicted = pair_detectability(N, **sizes_of(setting, "first"))[-1]
    assert measured == pytest.approx(predicted, rel=0.06)
    several = pair_detectability(N, positions=4, **sizes_of(setting, "first"))[-1]
    assert several == pytest.approx(2 * predicted)


def test_signal_meets_noise_near_the_threshold():
    sizes = {"vocabulary": 64, "rules": 16, "branching": 2, "depth": 4, "classes": 64}
    P = threshold_samples(rules=16, depth=4, classes=64)
    ratio = squared_signal(**sizes)[-1] / (2 * squared_noise(P, **sizes)[-1])
    assert ratio == pytest.approx(1, abs=0.05)


def test_few_tuples_leave_signal_and_noise_open():
    few = sizes_of((40, 2, 2, 3, 10), "uniform")
    assert squared_signal(**few)[0] == pytest.approx(2)
    assert np.isnan(squared_signal(**few)[1:]).all()
    noise = squared_noise([100, 1_000], **few)
    assert noise[:, 0].tolist() == [0, 0]
    assert np.isnan(noise[:, 1:]).all()
    # Sensitivity is a ratio of two exact means and needs no law of frequencies.
    for level, N in ((2, 160), (3, 320)):
        measured, error = measured_sensitivity((40, 2, 2, 3, 10), "uniform", level, N)
        predicted = synonymic_sensitivity(N, **few)[level - 1]
        assert measured == pytest.approx(predicted, abs=4 * error)


def test_as_many_tuples_as_symbols_suffice():
    setting = (40, 2, 2, 3, 20)
    sizes = sizes_of(setting, "uniform")
    measured = np.array(
        [
            [mean_square_difference(label_laws(joint)[0]) for joint in joint_laws(grammar)]
            for grammar in grammars(150, *setting, "uniform")
        ]
    ).mean(axis=0)
    assert measured == pytest.approx(squared_signal(**sizes), rel=0.04)


def test_level_thresholds_halve_the_sensitivity():
    for setting in SETTINGS:
        for ensemble in ("first", "uniform"):
            sizes = sizes_of(setting, ensemble)
            halves = [
                synonymic_sensitivity(N, **sizes)[level]
                for level, N in enumerate(level_thresholds(**sizes))
            ]
            assert halves == pytest.approx([0.5] * setting[3])
    large = {"vocabulary": 10**5, "rules": 100, "branching": 2, "depth": 4, "classes": 10**4}
    assert level_thresholds(**large) == pytest.approx(1e4 * 100.0 ** np.arange(1, 5), rel=1e-3)
    latin = {"vocabulary": 4, "rules": 4, "branching": 2, "depth": 3, "ensemble": "latin"}
    assert np.isinf(level_thresholds(**latin)[1:]).all()


def test_latin_rules_have_no_signal_below_the_label():
    sizes = {"vocabulary": 4, "rules": 4, "branching": 2, "depth": 3, "ensemble": "latin"}
    assert squared_signal(**sizes).tolist() == [2, 0, 0]
    assert synonymic_sensitivity(10**6, **sizes)[1:].tolist() == [1, 1]
    assert squared_noise(10**6, **sizes)[2] == pytest.approx(0.75 * 16e-6, rel=1e-3)
    assert pair_detectability(10**6, **sizes)[1:].tolist() == [0, 0]


def test_all_tuples_in_use_leave_nothing_to_the_ensemble():
    sizes = {"vocabulary": 8, "rules": 8, "branching": 2, "depth": 4}
    for function in (squared_signal, joint_squares):
        assert np.allclose(function(ensemble="uniform", **sizes), function(**sizes), rtol=1e-6)


def test_sizes_that_no_measurement_affords():
    sizes = {"vocabulary": 10**6, "rules": 10**5, "branching": 3, "depth": 20}
    for ensemble in ("first", "uniform"):
        signal = squared_signal(ensemble=ensemble, **sizes)
        noise = squared_noise(1e80, ensemble=ensemble, **sizes)
        assert (signal > 0).all()
        assert (np.diff(signal) < 0).all()
        assert np.isfinite(noise).all()
        assert noise[-1] == pytest.approx(1e-69, rel=1e-3)
    assert threshold_samples(rules=10**5, depth=20, classes=10**6) == pytest.approx(1e106)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"rules": 9}, "allowed: rules of at most 8"),
        ({"classes": 1}, "classes"),
        ({"classes": 3}, "divisible"),
        ({"ensemble": "odd"}, "ensemble"),
        ({"depth": 0}, "depth"),
        ({"depth": 10**6}, "from 1 to 1000"),
        ({"depth": 400}, "allowed: at most"),
    ],
)
def test_sizes_without_a_grammar_are_refused(change, text):
    sizes = {"vocabulary": 8, "rules": 4, "branching": 2, "depth": 3, "classes": 8} | change
    with pytest.raises(InvalidParameter, match=text):
        squared_signal(**sizes)


def test_other_values_out_of_range_are_refused():
    sizes = {"vocabulary": 8, "rules": 4, "branching": 2, "depth": 3}
    with pytest.raises(InvalidParameter, match="at least 1"):
        squared_noise(0.5, **sizes)
    with pytest.raises(InvalidParameter, match="third moments"):
        pair_detectability(100, ensemble="uniform", **sizes)
    with pytest.raises(InvalidParameter, match="smaller rules or depth"):
        threshold_samples(rules=10**6, depth=60, classes=8)
    with pytest.raises(InvalidParameter, match="or zipf=0"):
        squared_noise(
            100, zipf=1.0, vocabulary=10**4, rules=10**5, branching=3, depth=1, classes=10
        )
