"""Learned shares: planted functions, the exact split, standard errors, levels of a grammar."""

import json

import numpy as np
import pytest

from solvable.errors import InvalidData
from solvable.models.hierarchy.target import RandomHierarchy
from solvable.probes.shares import learned_shares, level_shares
from solvable.probes.targets import make_subject

SETTINGS = [
    ("sequential-recovery", {"degree": 1, "dimension": 12, "features": 3}),
    ("sequential-recovery", {"degree": 1, "dimension": 30, "features": 5, "decay": 0.4}),
    ("sequential-recovery", {"degree": 2, "dimension": 16, "features": 2}),
    ("sequential-recovery", {"degree": 1, "dimension": 12, "features": 3, "readout": "tanh"}),
    ("sequential-recovery", {"inputs": "gaussian", "degree": 2, "dimension": 6, "features": 3}),
    ("hierarchical-multi-index", {"dimension": 20, "features": 4, "link": "tanh(2*z)"}),
    ("separable-multi-index", {"dimension": 12, "directions": 3, "link": "relu"}),
    ("single-index", {"dimension": 15}),
    ("quadratic-network", {"dimension": 12, "target": "marchenko-pastur", "width_ratio": 0.5}),
    ("compositional-target", {"dimension": 12, "degree": 1, "features": 4}),
]


def planted(target, settings, seed, n=6_000):
    subject = make_subject(target, json.dumps(settings), seed)
    rng = np.random.default_rng(seed)
    X, _ = subject.sample(n, rng)
    names, parts = subject.parts(X)
    return names, parts, subject.clean(X), rng


@pytest.mark.parametrize("place", range(10))
def test_planted_functions_have_their_shares(place):
    names, parts, clean, rng = planted(*SETTINGS[place], seed=place)
    p = len(names)
    assert learned_shares(parts, clean, clean).share == pytest.approx(np.ones(p), abs=1e-9)
    assert learned_shares(parts, clean, np.full(len(clean), 3.0)).share == pytest.approx(
        np.zeros(p), abs=1e-12
    )
    # 0.7 of the first part of the target, and noise of the target's own size
    coefficients = np.linalg.lstsq(parts - parts.mean(0), clean - clean.mean(), rcond=None)[0]
    planted_part = 0.7 * coefficients[0] * parts[:, 0]
    found = learned_shares(
        parts, clean, planted_part + clean.std() * rng.standard_normal(len(clean))
    )
    wanted = np.where(np.arange(p) == 0, 0.7, 0.0)
    assert np.abs((found.share - wanted) / found.standard_error).max() < 3.5
    # the other parts of the target hold nothing of the first feature
    others = learned_shares(parts, clean, clean - coefficients[0] * parts[:, 0])
    assert others.share[0] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("place", range(10))
def test_the_split_of_the_error_is_exact_on_the_sample(place):
    _, parts, clean, rng = planted(*SETTINGS[place], seed=100 + place)
    fitted = np.tanh(clean) + 0.3 * parts[:, 0] ** 2 + rng.standard_normal(len(clean)) + 0.2
    found = learned_shares(parts, clean, fitted)
    together = 0.0
    if np.isfinite(found.together):
        together = (1 - found.together) ** 2 * found.together_energy
    whole = found.features_error + together + found.rest + found.mean_error
    assert whole == pytest.approx(found.error, rel=1e-10)


def test_scale_sign_and_order_of_the_feature_functions_do_not_matter():
    _, parts, clean, rng = planted(*SETTINGS[1], seed=3)
    fitted = 0.5 * clean + rng.standard_normal(len(clean))
    order = rng.permutation(parts.shape[1])
    changed = learned_shares(parts[:, order] * -7.0 + 2.0, clean, fitted)
    plain = learned_shares(parts, clean, fitted)
    assert changed.share == pytest.approx(plain.share[order], abs=1e-10)
    assert changed.standard_error == pytest.approx(plain.standard_error[order], rel=1e-8)


def test_standard_errors_cover():
    rng = np.random.default_rng(5)
    z = []
    for _ in range(200):
        x = rng.standard_normal((1_000, 3))
        psi = x**2 - 1 + 0.2 * (x[:, [1, 2, 0]] ** 2 - 1)
        target = psi @ [1.0, 0.5, 0.3]
        fitted = psi @ [0.8, 0.2, 0.3] + np.tanh(x[:, 0] * x[:, 1]) + x[:, 2] ** 3
        found = learned_shares(psi, target, fitted)
        z.append((found.share - [0.8, 0.4, 1.0]) / found.standard_error)
    z = np.array(z)
    # x_3³ and tanh(x_1 x_2) are not correlated with even functions of single inputs
    assert np.abs(z.mean(0)).max() < 4 / np.sqrt(200)
    assert z.std(0) == pytest.approx(np.ones(3), abs=0.2)


def test_a_calibrated_learner_has_the_excess_one():
    rng = np.random.default_rng(6)
    x = rng.standard_normal((40_000, 2))
    parts = x**2 - 1
    # posterior mean: E[f | x + noise in one direction], simulated by shrinking with independent noise
    kept, noise = 0.6, rng.standard_normal((40_000, 2))
    fitted = parts @ [kept, kept] + np.sqrt(2 * kept * (1 - kept)) * noise.sum(1)
    found = learned_shares(parts, parts.sum(1), fitted)
    assert found.excess == pytest.approx(1.0, abs=0.04)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p, c, f: (p[:, [0, 0]], c, f), "nearly dependent"),
        (lambda p, c, f: (p * 0, c, f), "constant"),
        (lambda p, c, f: (p, c, f * np.nan), "not finite"),
        (lambda p, c, f: (p, c, f[:5]), "shapes"),
        (lambda p, c, f: (np.column_stack([p, np.arange(len(p)) % 2]), c, f), "cannot be seen"),
    ],
)
def test_bad_input_is_one_line(change, words):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 2))
    with pytest.raises(InvalidData, match=words) as caught:
        learned_shares(*change(x, x.sum(1), x[:, 0]))
    assert "\n" not in str(caught.value)


def levels(classify, seed=0, n=4_000):
    target = RandomHierarchy(6, 3, 2, 3, seed=seed)
    X, y = target.sample(n, 1)
    swaps = [target.swap_synonyms(X, level, 10 + level) for level in range(1, 4)]
    return level_shares(lambda strings: classify(target, strings), X, y, swaps), target


def test_a_perfect_classifier_has_merged_all_levels():
    found, _ = levels(lambda target, S: np.eye(target.n_classes)[target.classify(S)])
    assert found.invariance == pytest.approx(np.ones(3))
    assert (found.label_share, found.brier, found.error) == pytest.approx((1, 0, 0))


def test_what_a_function_of_one_level_has_merged():
    def function(target, strings):
        # depends on the first symbol of level 2 alone, so that only leaves are merged
        symbol = target.parse(strings)[2][:, 0]
        return np.eye(target.n_classes)[symbol % target.n_classes]

    found, _ = levels(function)
    assert found.invariance[2] == pytest.approx(1)
    assert found.invariance[1] < 0.9
    # Brier score = error of the mean given the label + what varies with the synonyms
    assert found.brier == pytest.approx(found.label_error + found.synonym_error, abs=0.05)


def test_a_part_that_the_target_lacks_is_refused():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((20_000, 4))
    target = x[:, 0] + 0.5 * x[:, 2] ** 2 * x[:, 3]
    with pytest.raises(InvalidData, match="feature function 2"):
        learned_shares(x[:, [0, 1]], target, target)
