"""Number of findings of any kind that `learn` reports for tables without signal."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.data import load
from solvable.data.table import from_columns
from solvable.learn import Request, learn
from solvable.learn.competitors import LEARNED, Method
from solvable.learn.fold_fits import Measured
from solvable.learn.leaks import near_copies, telling_columns
from solvable.learn.scoring import Losses, score_methods
from solvable.learn.words import comparison_sentences, outlook_sentence
from solvable.networks.permutation import DRAWS, Permutations, draws_exceeded
from solvable.operators.signals import SampleSignals


def inputs(rng, n):
    """Draw columns of one kind: independent, correlated, skewed, counts or texts."""
    d = int(rng.choice([1, 3, 6, 12, 25]))
    X = rng.standard_normal((n, d))
    if rng.random() < 0.35:  # a few factors behind all columns
        X = X @ rng.standard_normal((d, d)) + rng.standard_normal((n, 2)) @ rng.standard_normal(
            (2, d)
        )
    columns = {f"x{k}": X[:, k] for k in range(d)}
    if rng.random() < 0.35:
        columns |= {f"skewed{k}": np.exp(1.5 * rng.standard_normal(n)) for k in range(2)}
    if rng.random() < 0.35:
        levels = np.array(["red", "green", "blue", "grey", "pink", "teal"])
        columns |= {f"text{k}": rng.choice(levels[: rng.integers(2, 7)], n) for k in range(2)}
    if rng.random() < 0.35:
        columns |= {f"count{k}": rng.poisson(3, n) for k in range(2)}
    return columns


def targets(rng, n):
    """Draw classes of equal or unequal shares, or numbers with or without heavy tails."""
    kind = rng.choice(["two", "many", "number"], p=[0.35, 0.3, 0.35])
    if kind == "number":
        tail = rng.choice(["normal", "t3", "t1.5", "lognormal"])
        return {
            "normal": lambda: rng.standard_normal(n),
            "t3": lambda: rng.standard_t(3, n),
            "t1.5": lambda: rng.standard_t(1.5, n),
            "lognormal": lambda: np.exp(1.5 * rng.standard_normal(n)),
        }[tail]()
    classes = 2 if kind == "two" else int(rng.integers(3, 11))
    shares = rng.dirichlet(np.full(classes, rng.choice([3.0, 50.0])))
    codes = rng.choice(classes, n, p=shares)
    codes[np.bincount(codes, minlength=classes)[codes] < 2] = np.argmax(np.bincount(codes))
    return np.array([f"c{k}" for k in range(classes)])[codes]


def noise_table(folder, number):
    """Write a file whose target is independent of its columns."""
    rng = random_stream("noise table", number)
    n = int(rng.choice([60, 100, 160, 250, 400], p=[0.25, 0.25, 0.2, 0.2, 0.1]))
    columns = inputs(rng, n) | {"y": targets(rng, n)}
    path = folder / f"noise{number}.csv"
    lines = zip(*(map(str, column.tolist()) for column in columns.values()), strict=True)
    path.write_text("\n".join([",".join(columns), *map(",".join, lines)]) + "\n")
    return load(str(path), target="y")


def findings(found):
    """List everything in the report that is a finding."""
    made = [f"directions: {layer.directions}" for layer in found.found if layer.directions]
    for score in found.methods:
        if score.beats_constant or score.verdict in ("better", "worse"):
            made.append(f"{score.verdict}: {score.key}")
    made += ["forecast"] if found.outlook.expected else []
    made += [f"warning: {warning}" for warning in found.warnings]
    made += [f"near copies: {note}" for note in found.treatments if "nearly equal" in note]
    return made


def test_no_findings_in_a_few_tables_without_signal(tmp_path, without_learning_curve):
    # Numbers, two classes and many classes; each had findings without correction for several tests.
    tables = [noise_table(tmp_path, number) for number in (2, 3, 4)]
    assert [table.kind for table in tables] == ["binary", "classification", "regression"]
    for table, context in zip(tables, [nullcontext, *2 * [without_learning_curve]], strict=True):
        with context():
            found = learn(table, Request(folds=3))
        assert findings(found) == []
        assert "No method is clearly better" in comparison_sentences(found)[0]
        assert "There is no forecast: no direction was found" in outlook_sentence(found)


@pytest.mark.slow
def test_at_most_five_of_a_hundred_tables_without_signal_have_a_finding(tmp_path):
    # These tables were not used to set the levels of the tests.
    made = {}
    for number in range(200, 300):
        found = learn(noise_table(tmp_path, number))
        if findings(found):
            made[number] = findings(found)
    assert len(made) <= 5, made


def strongest(Z, y, seed):
    """Return True if the test of the filter finds a first direction."""
    signals = SampleSignals(Z, (y - y.mean())[:, None])
    rng = np.random.default_rng(seed)

    permuted = Permutations(
        lambda: Z, lambda draws: np.column_stack([rng.permutation(y) for _ in draws])
    )
    return draws_exceeded(signals, permuted, np.empty((Z.shape[1], 0)), 0) == DRAWS


@pytest.mark.parametrize("tails", ["normal", "heavy"])
def test_the_first_direction_has_a_level_of_one_in_a_hundred(tails):
    # With rows of very unequal norm and heavy-tailed labels, the nulls vary by a factor.
    hits = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        Z = rng.standard_normal((60, 12)) * np.exp(rng.standard_normal((60, 1)))
        y = rng.standard_normal(60) if tails == "normal" else rng.standard_t(1.2, 60)
        hits += strongest(Z, y, seed)
    # With 1.2 % of 150 expected, more than 6 have a probability of 0.3 %.
    assert hits <= 6


def test_a_direction_that_is_there_is_found_by_the_test():
    hits = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        Z = rng.standard_normal((400, 12))
        hits += strongest(Z, np.sign(Z[:, 0] ** 2 - 0.45 + 0.5 * rng.standard_normal(400)), seed)
    assert hits >= 18


def fits_of(losses_of, folds):
    """One fit per fold that predicts 0 for a right row and 1 for a wrong row."""
    return {
        key: [
            Measured(key, fold, 80, np.asarray(wrong[folds == fold]), rows=80)
            for fold in range(folds.max() + 1)
        ]
        for key, wrong in losses_of.items()
    }


def scored(**wrong):
    folds = np.arange(200) % 5
    compared = [Method(key, key, key, "", lambda: None) for key in wrong]
    losses = Losses(np.zeros(200), folds, regression=False)
    of_rows = {key: (np.arange(200) < count).astype(float) for key, count in wrong.items()}
    scores = score_methods(compared, fits_of(of_rows, folds), losses)
    return {score.key: score for score in scores}


def test_methods_that_do_not_beat_the_constant_are_not_told_apart():
    # One method is wrong on 20 more rows than the other; both are worse than the constant.
    wrong = {LEARNED: 120, "nngp": 140, "ridge": 121, "constant": 100}
    assert {one.verdict for one in scored(**wrong).values()} == {None, "no difference"}
    better = scored(**wrong | {"constant": 180})
    assert better["nngp"].verdict == "worse"
    assert all(one.beats_constant for key, one in better.items() if key != "constant")


def test_differences_are_those_of_holm():
    from scipy.stats import norm

    wrong = {LEARNED: 40, "nngp": 47, "ridge": 100, "rbf": 90, "constant": 120}
    found = scored(**wrong)
    # Three differences are decided at the first level, and the last is tested at 5 %. The first
    # half-width is that of Bonferroni.
    for key, level in (("ridge", 0.05 / 4), ("nngp", 0.05)):
        first, second = (np.arange(200) < wrong[key]), (np.arange(200) < wrong[LEARNED])
        p10, p01 = (np.sum(first & ~second) + 1) / 202, 1 / 202
        half = norm.isf(level / 2) * np.sqrt((p10 + p01 - (p10 - p01) ** 2) / 202)
        assert found[key].difference_lower == pytest.approx(p10 - p01 - half)
    assert found["nngp"].verdict == "worse"


def test_no_column_tells_a_target_of_heavy_tails():
    told = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        columns = {f"x{k}": rng.standard_t(1.2, 200) for k in range(4)}
        columns["word"] = np.array(["ab"[k] for k in rng.integers(2, size=200)], dtype=object)
        told += bool(
            telling_columns(from_columns(columns), rng.standard_cauchy(200), regression=True)
        )
    assert told == 0


def test_a_column_that_tells_a_target_of_heavy_tails_is_named():
    rng = np.random.default_rng(5)
    y = rng.standard_cauchy(300)
    columns = {"x": rng.standard_normal(300), "bent": np.arctan(y), "unit": 3 - 2 * y}
    found = telling_columns(from_columns(columns), y, regression=True)
    assert {name for name, _ in found} == {"bent", "unit"}


def test_rows_that_agree_in_columns_of_few_values_are_no_near_copies_for_that():
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        codes = np.eye(4)[rng.integers(4, size=200)]
        numbers = rng.standard_normal((200, 1 + seed % 4))
        X = np.column_stack([numbers, codes, rng.poisson(3, 200)])
        found += 200 - len(np.unique(near_copies(X)))
        if seed % 4 == 3:  # enough numbers to distinguish copies from neighbours
            jittered = numbers + 1e-4 * rng.standard_normal(numbers.shape)
            copies = np.column_stack([jittered, X[:, 4:]])
            groups = near_copies(np.concatenate([X, copies]))
            assert np.mean(groups[:200] == groups[200:]) > 0.9
    assert found <= 4
