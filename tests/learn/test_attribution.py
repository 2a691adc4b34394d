"""Attribution of directions to columns: planted columns, closed forms, and unseen rows."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from solvable.data import Preparation
from solvable.data.table import Table
from solvable.learn import Request, feature_words, learn
from solvable.learn.attribution import MOST_COLUMNS, attribute, matched
from solvable.learn.tables import shares_as_csv
from solvable.networks.filters import FilterReport


class Plain:
    """Replacement of a fitted model, whose first filter keeps given functions of the columns."""

    def __init__(self, functions, eigenvalues):
        from types import SimpleNamespace

        from solvable.networks.layers import Filter

        class Layer(Filter):
            def apply(self, h):
                return np.column_stack([function(h) for function in functions])

        layer = object.__new__(Layer)
        self.network_ = SimpleNamespace(layers=[layer])
        ratios = np.full((1, len(functions)), 2.0)
        values = np.array(eigenvalues)
        self.filters_ = [
            FilterReport(values, values, values, values, null_ratios=ratios, n_above=len(values))
        ]


def prepared(X, texts=None):
    names = tuple(f"c{i}" for i in range(X.shape[1]))
    table = Table(X, names, {} if texts is None else {"kind": texts})
    preparation = Preparation.fit(table)
    return preparation, preparation.transform(table)


def test_a_line_in_independent_columns_has_its_squared_loadings():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 4)) * [1.0, 10.0, 0.1, 3.0] + 5
    loadings = np.array([2.0, 0.1, 0.0, -1 / 3])
    preparation, Z = prepared(X)
    model = Plain([lambda Z: Z @ loadings], [0.3])
    made = attribute(model, Z, preparation, seed=1)
    standardised = (loadings * X.std(axis=0)) ** 2
    # Squared differences of 256 pairs have a relative standard error of 9 %.
    np.testing.assert_allclose(made.shares[0], standardised / standardised.sum(), atol=0.1)
    assert made.straight[0] == pytest.approx(1)


def test_products_and_squares_have_their_total_effects():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((4000, 3))
    preparation, Z = prepared(X)
    functions = [lambda Z: Z[:, 0] * Z[:, 1], lambda Z: Z[:, 2] ** 2 + Z[:, 0]]
    made = attribute(Plain(functions, [-2.0, 1.0]), Z, preparation, seed=2)
    # For the product T_1 = T_2 = Var f = 1; for the sum Var(x²) = 2 and Var(x) = 1.
    np.testing.assert_allclose(made.shares[0], [0.5, 0.5, 0], atol=0.12)
    np.testing.assert_allclose(made.shares[1], [1 / 3, 0, 2 / 3], atol=0.12)
    np.testing.assert_allclose(made.straight, [0, 1 / 3], atol=0.06)
    # Effects are divided by the variance, with sums 2 and 1, so the total has weights 4 to 1.
    np.testing.assert_allclose(made.total, (4 * made.shares[0] + made.shares[1]) / 5, atol=0.08)


def test_columns_of_a_text_go_together():
    rng = np.random.default_rng(3)
    texts = rng.choice(["a", "b", "c", "d"], 900).astype(object)
    preparation, Z = prepared(rng.standard_normal((900, 1)), texts)
    assert Z.shape == (900, 5)
    codes = np.array([0.0, 1.0, 1.0, 3.0, 0.0])
    model = Plain([lambda Z: Z @ codes], [1.0])
    made = attribute(model, Z, preparation, seed=0)
    assert made.columns == ("c0", "kind")
    np.testing.assert_allclose(made.shares[0], [0, 1], atol=1e-12)


def test_nothing_is_said_of_no_direction_or_of_too_many_columns():
    rng = np.random.default_rng(4)
    preparation, Z = prepared(rng.standard_normal((30, 2)))
    assert attribute(Plain([], []), Z, preparation, seed=0) is None
    preparation, Z = prepared(rng.standard_normal((30, MOST_COLUMNS + 1)))
    assert attribute(Plain([lambda Z: Z[:, 0]], [1.0]), Z, preparation, seed=0) is None


def test_directions_are_matched_whatever_their_order_and_sign():
    values = np.random.default_rng(5).standard_normal((40, 3))
    likest, again = matched([-values[:, [2, 0, 1]]], [values])
    np.testing.assert_array_equal(likest, [[1, 2, 0]])
    np.testing.assert_allclose(again, 1)


@pytest.fixture(scope="module")
def planted(tmp_path_factory, without_learning_curve):
    """Table whose target depends on a product and a text; five columns are noise."""
    from solvable.data import load

    rng = np.random.default_rng(6)
    X = rng.standard_normal((400, 7))
    text = rng.choice(["low", "high"], 400)
    y = X[:, 1] * X[:, 4] + 1.5 * (text == "high") + 0.2 * rng.standard_normal(400)
    path = tmp_path_factory.mktemp("planted") / "t.csv"
    lines = [",".join([*(f"x{i}" for i in range(7)), "level", "y"])]
    for row, level, value in zip(X, text, y, strict=True):
        lines.append(",".join([*(f"{cell:.5f}" for cell in row), level, f"{value:.5f}"]))
    path.write_text("\n".join(lines))
    with without_learning_curve():
        return learn(load(path, target="y"), Request(folds=3))


def test_planted_columns_have_the_largest_shares(planted):
    layer = planted.found[0]
    named = {part.column for part in layer.columns[:3]}
    assert named == {"x1", "x4", "level"}
    assert sum(part.share for part in layer.columns) == pytest.approx(1)
    # On unseen rows only the relevant columns are named.
    assert {part.column for part in layer.columns if part.named} == named
    # The product is (x1 + x4)² - (x1 - x4)², up to a factor: two linear directions of opposite sign.
    told = [one for one in layer.strongest if one.number <= layer.directions]
    pair = [one for one in told if {part.column for part in one.columns[:2]} == {"x1", "x4"}][:2]
    assert pair[0].strength * pair[1].strength < 0
    assert all(one.straight > 0.9 and one.again > 0.8 for one in pair)


def test_what_is_said_and_written(planted):
    layer = planted.found[0]
    sentence = feature_words.kinds_sentence(layer, planted)
    assert "'x1'" in sentence
    assert ("more directions" in sentence) == (layer.directions > 9)
    told = list(csv.DictReader(io.StringIO(shares_as_csv(planted))))
    of_all = {row["column"]: float(row["share"]) for row in told if row["direction"] == "all"}
    assert len(of_all) == 8
    assert sum(of_all.values()) == pytest.approx(1)
    numbers = {row["direction"] for row in told} - {"all"}
    assert numbers == {row[0] for row in feature_words.rest_rows(layer)}
    lost = {row["column"]: float(row["lost"]) for row in told if row["direction"] == "all"}
    assert lost["x1"] > 0.3
    assert max(lost["x0"], lost["x2"]) < 0.2


@pytest.mark.usefixtures("learned_features_alone")
def test_images_have_shares_of_pixels_and_no_table_of_them():
    from dataclasses import replace

    from solvable.data import load

    digits = load("digits:even-odd")
    few = np.arange(160)
    small = replace(digits, X=digits.X[few], y=digits.y[few], table=digits.table.rows(few))
    found = learn(small, Request(folds=2))
    layer = found.found[0]
    assert len(layer.columns) == 64
    assert feature_words.kinds_sentence(layer, found) == ""
    # Pixels that are always empty have no share.
    empty = {f"pixel_{i // 8}_{i % 8}" for i in np.flatnonzero(np.ptp(small.X, axis=0) == 0)}
    assert all(part.share == 0 for part in layer.columns if part.column in empty)
    assert all(one.unseen is None for one in layer.strongest)
