"""Correlations, next tokens and denoising against exact laws, enumeration and belief propagation."""

import numpy as np
import pytest
from grammar_laws import compatible_counts, grammars, token_covariances, transition
from scipy.stats import hypergeom

from solvable.errors import InvalidParameter
from solvable.models.hierarchy.grammar.language import (
    compatible_losses,
    compatible_tokens,
    correlation_floor,
    correlation_plateau,
    critical_noise,
    data_thresholds,
    diffusion_map,
    level_beliefs,
    next_token_loss,
    zipf_error,
    zipf_exponent,
)
from solvable.models.hierarchy.grammar.measure import context_losses

NAMES = ("vocabulary", "rules", "branching", "depth", "classes")


def sizes_of(setting, ensemble="first"):
    return dict(zip(NAMES, setting, strict=True)) | {"ensemble": ensemble}


@pytest.mark.parametrize("ensemble", ["first", "uniform"])
@pytest.mark.parametrize(
    "setting",
    [(16, 4, 2, 4, 16), (16, 8, 2, 3, 4), (12, 4, 3, 3, 12), (8, 4, 2, 4, 8), (16, 14, 2, 3, 16)],
)
def test_plateaus_are_the_mean_over_grammars(setting, ensemble):
    squares = np.array([token_covariances(grammar) for grammar in grammars(60, *setting, ensemble)])
    predicted = correlation_plateau(**sizes_of(setting, ensemble)) ** 2
    error = squares.std(axis=0, ddof=1) / np.sqrt(len(squares))
    # Positions share the rules of a level, and products of three frequencies are left out: order 1/(V m).
    assert (abs(squares.mean(axis=0) - predicted) <= 4 * error + 0.04 * predicted).all()


def test_plateaus_of_large_grammars_are_the_printed_ones():
    sizes = {"vocabulary": 10**6, "rules": 10**3, "branching": 2, "depth": 4}
    ell = np.arange(4, 0, -1)
    printed = (1 - 1e-3) / (1e18 * 1e3 ** (2 * ell - 1.0))
    assert np.allclose(correlation_plateau(**sizes) ** 2, printed, rtol=3e-3)
    # P_l = V m^(2 l - 1) / (1 - f), and V m^(l + 1) with shared filters
    assert np.allclose(
        data_thresholds(**sizes), 1e6 * 1e3 ** (2 * ell - 1.0) / (1 - 1e-3), rtol=3e-3
    )
    shared = 1e6 * 1e3 ** np.where(ell > 1, ell + 1.0, 1.0) / (1 - 1e-3)
    assert np.allclose(data_thresholds(shared=True, **sizes), shared, rtol=3e-3)


def test_latent_context_has_the_correlations_of_shared_filters():
    # Covariance of a leaf with a symbol one level below the branches, at the top of grammars of depth 3.
    squares = []
    for grammar in grammars(200, 12, 4, 2, 3, 12, "uniform"):
        joint = np.zeros((12, 12))
        table = grammar.tables[0]
        np.add.at(joint, (table[:, :, 0].ravel(), table[:, :, 1].ravel()), 1 / 48)
        covariance = joint - np.outer(joint.sum(axis=1), joint.sum(axis=0))
        leaf = transition(grammar.tables[1], 1, 12) @ transition(grammar.tables[2], 1, 12)
        symbol = transition(grammar.tables[1], 0, 12)
        squares.append(((symbol.T @ covariance @ leaf) ** 2).mean())
    predicted = correlation_plateau(shared=True, **sizes_of((12, 4, 2, 3, 12), "uniform"))[0] ** 2
    error = np.std(squares) / np.sqrt(len(squares))
    assert np.mean(squares) == pytest.approx(predicted, abs=4 * error + 0.04 * predicted)


@pytest.mark.parametrize(
    "sizes",
    [
        {"vocabulary": 8, "rules": 8, "branching": 2, "depth": 3, "ensemble": "latin"},
        {"vocabulary": 8, "rules": 8, "branching": 2, "depth": 3, "ensemble": "first"},
        {"vocabulary": 5, "rules": 25, "branching": 3, "depth": 3, "ensemble": "uniform"},
    ],
)
def test_grammars_that_use_every_tuple_have_no_correlations(sizes):
    assert correlation_plateau(**sizes).tolist() == [0, 0, 0]
    assert np.isinf(data_thresholds(**sizes)).all()
    assert next_token_loss(1e30, **sizes) == pytest.approx(np.log(sizes["vocabulary"]), rel=1e-6)


def test_sampling_floor_of_independent_tokens():
    V, N = 12, 3_000
    rng = np.random.default_rng(0)
    squares = []
    for _ in range(60):
        joint = np.histogram2d(*rng.integers(0, V, size=(2, N)), bins=V, range=[[0, V]] * 2)[0] / N
        squares.append(((joint - np.outer(joint.sum(axis=1), joint.sum(axis=0))) ** 2).mean())
    error = np.std(squares) / np.sqrt(len(squares))
    assert np.mean(squares) == pytest.approx(correlation_floor(N, vocabulary=V) ** 2, abs=4 * error)


def chain_of_counts(V, m, s, start, steps):
    """Law of the number of compatible symbols, for tuples drawn without replacement from all."""
    law = np.zeros(V + 1)
    law[start] = 1.0
    for _ in range(steps):
        following = np.zeros(V + 1)
        for k in np.flatnonzero(law > 1e-15):
            following[1:] += law[k] * hypergeom.pmf(np.arange(V), V**s - 1, V - 1, m * k - 1)
        law = following
    return law


@pytest.mark.parametrize(
    "setting", [(32, 8, 2, 4, 32), (16, 15, 2, 3, 4), (8, 30, 3, 2, 8), (8, 1, 2, 2, 8)]
)
def test_counts_and_their_logarithms(setting):
    V, m, s, L, classes = setting
    sizes, rng = sizes_of(setting, "uniform"), np.random.default_rng(0)
    losses, counts = compatible_losses(**sizes), compatible_tokens(**sizes)
    for k in range(1, L + 1):
        law = chain_of_counts(V, m, s, classes if k == L else V, k)[1:]
        assert counts[k] == pytest.approx(law @ np.arange(1, V + 1), rel=1e-9)
        u = drawn_frequencies(setting, L - k, 40_000, rng)
        true = rng.choice(u, 40_000, p=u / u.sum())
        others = rng.choice(V, 40_000, p=law / law.sum())[:, None] > np.arange(V)
        total = true + (rng.choice(u, others.shape) * others).sum(axis=1)
        drawn = np.log(total / true)
        error = (drawn.std() + np.log(true).std()) / 200
        # The count is treated as binomial, not as drawn without replacement.
        assert losses[k] == pytest.approx(drawn.mean(), abs=3 * error + 0.004)


def drawn_frequencies(setting, level, count, rng):
    """Frequencies of symbols of a level in units of their mean: sums over tuples drawn from all."""
    V, m, s, _, classes = setting
    u = np.ones(count)
    for parents in [classes, *[V] * (level - 1)][:level]:
        numbers = rng.hypergeometric(V ** (s - 1), V**s - V ** (s - 1), parents * m, count)
        used = np.arange(numbers.max()) < numbers[:, None]
        u = (rng.choice(u, used.shape) * used).sum(axis=1) * V / (parents * m)
    return u


@pytest.mark.parametrize("setting", [(16, 4, 2, 3, 16), (16, 4, 2, 3, 8), (8, 8, 3, 3, 8)])
def test_counts_of_tuples_with_equally_frequent_first_symbols(setting):
    sizes, L = sizes_of(setting), setting[3]
    counts, losses = np.zeros(L), np.zeros(L)
    for grammar in grammars(150, *setting):
        rng = np.random.default_rng(grammar.seed)
        for steps in range(1, L + 1):
            drawn = compatible_counts(grammar, steps, 40, rng)
            counts[steps - 1] += drawn.mean() / 150
            losses[steps - 1] += np.log(drawn).mean() / 150
    # Mean counts of 150 grammars scatter by up to 1 %.
    assert counts == pytest.approx(compatible_tokens(**sizes)[1:], rel=0.03)
    # All ancestors are equally likely here, as labels are; unequal frequencies lower the entropy.
    predicted = compatible_losses(**sizes)[1:]
    assert (losses >= predicted - 0.01).all()
    assert losses[-1] == pytest.approx(predicted[-1], abs=0.015)


@pytest.mark.parametrize("ensemble", ["first", "uniform"])
@pytest.mark.parametrize(("V", "m"), [(12, 4), (12, 9)])
def test_losses_are_the_entropies_of_drawn_grammars(V, m, ensemble):
    # Exact conditional entropy of the last of four leaves, over all strings that a grammar produces.
    measured = []
    for grammar in grammars(20, V, m, 2, 2, V, ensemble):
        strings = grammar.unrank(np.arange(grammar.n_strings))[0].astype(int)
        entropies = []
        for width in (0, 1, 3):
            context = strings[:, 3 - width : 3] @ V ** np.arange(width)
            joint = np.unique(context * V + strings[:, 3], return_counts=True)[1] / len(strings)
            alone = np.unique(context, return_counts=True)[1] / len(strings)
            entropies.append(alone @ np.log(alone) - joint @ np.log(joint))
        measured.append(entropies)
    measured = np.array(measured)
    predicted = compatible_losses(**sizes_of((V, m, 2, 2, V), ensemble))
    error = measured.std(axis=0) / np.sqrt(len(measured))
    # The frequencies of different symbols are treated as independent.
    assert (abs(measured.mean(axis=0) - predicted) <= 4 * error + [0.01, 0.01, 0]).all()


@pytest.mark.parametrize(
    ("setting", "ensemble"),
    [
        ((32, 2, 2, 3, 32), "first"),
        ((36, 2, 2, 4, 30), "uniform"),
        ((32, 3, 2, 3, 32), "first"),
        ((16, 1, 2, 3, 16), "uniform"),
    ],
)
def test_losses_with_few_rules(setting, ensemble):
    # Frequencies of symbols are far from equal, so that their first order would not do.
    V = setting[0]
    measured = []
    for grammar in grammars(16, *setting, ensemble):
        law = np.full(grammar.n_classes, 1 / grammar.n_classes)
        for table in grammar.tables:
            law = law @ transition(table, grammar.branching - 1, V)
        losses = context_losses(grammar, grammar.sample(500, 1)[0])[::-1]
        measured.append([-(law[law > 0] @ np.log(law[law > 0])), *losses])
    measured = np.array(measured)
    error = measured.std(axis=0, ddof=1) / np.sqrt(len(measured))
    predicted = compatible_losses(**sizes_of(setting, ensemble))
    # Compatible strings that share an ancestor are treated as if they did not: a small error.
    assert (abs(measured.mean(axis=0) - predicted) <= 3 * error + 0.01).all()
    assert (error[:2] < 0.08).all()


def test_few_tuples_leave_correlations_and_losses_open():
    few = sizes_of((40, 2, 2, 3, 10), "uniform")
    for function in (correlation_plateau, data_thresholds):
        assert np.isnan(function(**few)).all()
    assert np.isnan(compatible_losses(**few)).tolist() == [True] * 3 + [False]
    assert np.isnan(next_token_loss([10, 1e9], **few)).all()
    # n_c m = V is enough, and so is the ensemble `first`, or a grammar without symbols in between.
    for enough in (
        few | {"classes": 20},
        sizes_of((16, 8, 2, 3, 2)),
        few | {"depth": 1},
    ):
        assert np.isfinite(correlation_plateau(**enough)).all()
        assert np.isfinite(compatible_losses(**enough)).all()


def test_loss_falls_in_steps_along_its_envelope():
    sizes = {"vocabulary": 10**4, "rules": 100, "branching": 2, "depth": 6}
    thresholds = data_thresholds(**sizes)[::-1]
    losses = compatible_losses(**sizes)
    assert next_token_loss(thresholds * 0.999, **sizes) == pytest.approx(losses[:-1])
    assert next_token_loss(thresholds * 1.001, **sizes) == pytest.approx(losses[1:])
    # The excess over the limit falls by f = 1/100 while thresholds grow by m² = 10^4 per level.
    # Deep grammars: the frequencies of all ancestors have the same spread.
    sizes["depth"] = 12
    losses = compatible_losses(**sizes)
    limit = losses[-2]
    for shared, alpha in ((False, 0.5), (True, 1.0)):
        thresholds = data_thresholds(shared=shared, **sizes)[::-1]
        slope = np.log((losses[4] - limit) / (losses[3] - limit)) / np.log(
            thresholds[3] / thresholds[2]
        )
        assert slope == pytest.approx(-alpha, rel=0.02)


def drawn_beliefs(grammar, epsilon, count, rng):
    """Mean belief in the true symbol, label first, by exact upward inference from smeared leaves."""
    levels = grammar.sample_tree(count, rng)
    V = grammar.vocabulary
    beliefs = np.full((*levels[-1].shape, V), epsilon / V)
    np.put_along_axis(
        beliefs, levels[-1][..., None].astype(int), 1 - epsilon + epsilon / V, axis=-1
    )
    means = [1 - epsilon + epsilon / V]
    for table, symbols in zip(grammar.tables[::-1], levels[-2::-1], strict=True):
        children = beliefs.reshape(count, symbols.shape[1], grammar.branching, V)
        product = np.prod(
            [children[:, :, p][..., table[:, :, p]] for p in range(grammar.branching)], axis=0
        )
        beliefs = product.sum(axis=-1)
        beliefs /= beliefs.sum(axis=-1, keepdims=True)
        means.append(np.take_along_axis(beliefs, symbols[..., None].astype(int), axis=-1).mean())
    return np.array(means[::-1])


@pytest.mark.parametrize("ensemble", ["first", "uniform"])
@pytest.mark.parametrize("setting", [(32, 8, 2, 4, 32), (16, 4, 3, 3, 8)])
def test_beliefs_follow_the_map(setting, ensemble):
    rng = np.random.default_rng(0)
    for epsilon in (0.2, 0.5, 0.8):
        measured = [drawn_beliefs(g, epsilon, 300, rng) for g in grammars(4, *setting, ensemble)]
        predicted = level_beliefs(epsilon, **sizes_of(setting, ensemble))
        # The map neglects fluctuations of beliefs between symbols.
        assert np.allclose(np.mean(measured, axis=0), predicted, atol=0.015)
    with pytest.raises(InvalidParameter, match="from 0 to 1"):
        level_beliefs([0.5, 1.2], **sizes_of(setting))


def test_beliefs_of_latin_rules():
    rng = np.random.default_rng(0)
    setting = (5, 5, 2, 3, 5)
    for epsilon in (0.1, 0.5):
        measured = drawn_beliefs(grammars(1, *setting, "latin")[0], epsilon, 200, rng)
        # All parts of a Latin square look the same, so the map is exact at the first level.
        assert measured[:3] == pytest.approx(
            level_beliefs(epsilon, **sizes_of(setting, "latin"))[:3], abs=1e-9
        )
    assert (
        critical_noise(vocabulary=5, rules=5, branching=2, ensemble="latin").phase == "class lost"
    )


@pytest.mark.parametrize("ensemble", ["first", "uniform"])
def test_map_is_inference_with_mean_scores_of_other_tuples(ensemble):
    # Mean score of a rule other than the true one, over drawn grammars.
    V, m, s, p = 6, 3, 3, 0.6
    scores = []
    for grammar in grammars(300, V, m, s, 2, V, ensemble):
        tuples = grammar.tables[1].reshape(-1, s)
        equal = (tuples[:, None] == tuples[None]).sum(axis=2)
        score = p**equal * ((1 - p) / (V - 1)) ** (s - equal)
        scores.append((score.sum() - np.trace(score)) / (len(score) * (len(score) - 1)))
    rest = np.mean(scores)
    expected = (p**s + (m - 1) * rest) / (p**s + (m * V - 1) * rest)
    value = diffusion_map(p, vocabulary=V, rules=m, branching=s, ensemble=ensemble)
    assert value == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize("ensemble", ["first", "uniform"])
@pytest.mark.parametrize("sizes", [(32, 8, 2), (16, 4, 3), (10**6, 50, 2), (10**6, 1000, 3)])
def test_critical_noise_separates_the_fates_of_deep_grammars(sizes, ensemble):
    names = dict(zip(NAMES[:3], sizes, strict=True)) | {"ensemble": ensemble}
    critical = critical_noise(**names)
    assert critical.phase == "transition"
    sharp = 1 - critical.epsilon
    for change, fate in ((-0.01, 1.0), (0.01, 1 / sizes[0])):
        epsilon = 1 - sharp * (1 - change)
        p = 1 - epsilon + epsilon / sizes[0]
        for _ in range(3_000):
            p = float(diffusion_map(p, **names))
        assert p == pytest.approx(fate, rel=1e-3)


def test_phases_at_the_slopes_of_the_map():
    assert critical_noise(vocabulary=16, rules=16, branching=2).phase == "class lost"
    assert critical_noise(vocabulary=16, rules=1, branching=2).phase == "class survives"
    h, V, s = 1e-6, 16, 2
    for ensemble in ("first", "uniform"):
        # The phase changes with the number of rules where a slope passes 1.
        for m in range(1, 17):
            names = {"vocabulary": V, "rules": m, "branching": s, "ensemble": ensemble}
            top = (1 - diffusion_map(1 - h, **names)) / h
            bottom = (diffusion_map(1 / V + h, **names) - 1 / V) / h
            phase = critical_noise(**names).phase
            assert (phase == "class lost") == (top >= 1)
            assert (phase == "class survives") == (bottom >= 1 > top)
            if ensemble == "uniform":
                assert top == pytest.approx(s * m * (V - 1) / (V**s - 1), rel=1e-4)
                assert bottom == pytest.approx(s / m * (1 - 1 / V) / (1 - V**-s), rel=1e-4)


@pytest.mark.parametrize("zipf", [0.5, 1.0, 1.5])
def test_error_with_unequal_rules_falls_with_the_exponent(zipf):
    sizes = {"rules": 10_000, "branching": 2, "depth": 2, "classes": 16, "zipf": zipf}
    law = np.arange(1.0, 10_001) ** -(1 + zipf)
    law /= law.sum()
    thresholds = 16 * 10_000 / law
    N = np.sqrt(thresholds[[10, 300]] * thresholds[[11, 301]])
    first, last = zipf_error(N, **sizes)
    slope = np.log(last / first) / np.log(N[1] / N[0])
    # The sum over the rules that are left, minus those beyond the last, bends the line a little.
    assert slope == pytest.approx(-zipf_exponent(zipf), abs=0.1)
    assert zipf_error(1.0, **sizes) == pytest.approx(15 / 16)
    assert zipf_error(2 * thresholds[-1], **sizes) == pytest.approx(0, abs=1e-12)


def test_equal_rules_are_learned_together_at_the_threshold():
    sizes = {"rules": 4, "branching": 2, "depth": 3, "classes": 8, "zipf": 0.0}
    assert zipf_error([511, 513], **sizes) == pytest.approx([7 / 8, 0])


def test_sizes_that_no_measurement_affords():
    sizes = {"vocabulary": 10**6, "rules": 10**5, "branching": 3, "depth": 20}
    thresholds, losses = data_thresholds(**sizes), compatible_losses(**sizes)
    assert np.isfinite(thresholds).all()
    assert (np.diff(thresholds) < 0).all()
    assert losses[0] == pytest.approx(np.log(1e6), rel=1e-6)
    assert (np.diff(losses) <= 1e-9).all()
    assert losses[-1] > 0
    assert np.isfinite(level_beliefs([0.0, 0.5, 1.0], **sizes)).all()
