"""Copies of rows are used once or tested together; rows that are equal by chance are kept."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.data import load
from solvable.learn import Request, learn
from solvable.learn.dealt_rows import DealtRows, used_rows, without_copies
from solvable.learn.leaks import near_copies
from solvable.learn.scoring import Losses


def write(path, X, y):
    rows = [",".join(map(str, [*row, value])) for row, value in zip(X.tolist(), y, strict=True)]
    head = ",".join([*(f"x{j}" for j in range(X.shape[1])), "y"])
    path.write_text("\n".join([head, *rows]) + "\n")
    return load(str(path), target="y")


def planted(n=120):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 6)).round(5)
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.standard_normal(n)
    return X, np.where(y > 0, "up", "down")


def test_a_table_with_every_row_three_times_is_the_table(tmp_path):
    X, y = planted()
    once = learn(write(tmp_path / "once.csv", X, y), Request(folds=2))
    order = np.concatenate([np.arange(120), np.random.default_rng(1).permutation(240) % 120])
    thrice = learn(write(tmp_path / "thrice.csv", X[order], y[order]), Request(folds=2))
    assert once.n_samples == thrice.n_samples == 120
    assert any("dropped 240 of 360 rows: equal" in note for note in thrice.treatments)
    for one, other in zip(once.methods, thrice.methods, strict=True):
        assert other.error == pytest.approx(one.error)
        assert other.upper - other.lower == pytest.approx(one.upper - one.lower)
    assert thrice.found[0].directions == once.found[0].directions
    curves = [[point.errors for point in one.outlook.curve] for one in (once, thrice)]
    np.testing.assert_allclose(curves[1], curves[0])


def test_rows_that_are_equal_by_chance_stay(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.integers(3, size=(400, 4))
    y = np.where(X[:, 0] + rng.integers(2, size=400) > 1, "a", "b")
    data = write(tmp_path / "few.csv", X, y)
    assert len(np.unique(data.identical_rows())) < 170
    np.testing.assert_array_equal(without_copies(data), np.arange(400))
    # Rows that are equal by chance are dealt independently, so folds have equal sizes.
    dealt = DealtRows(data, np.arange(400), Request())
    assert np.bincount(dealt.folds).tolist() == [80] * 5
    assert dealt.clusters() is None


def test_a_table_of_few_values_that_was_doubled_is_halved(tmp_path):
    rng = np.random.default_rng(3)
    X = rng.integers(3, size=(200, 4))
    y = np.where(X[:, 0] > 0, "a", "b")
    order = rng.permutation(np.tile(np.arange(200), 2))
    data = write(tmp_path / "double.csv", X[order], y[order])
    kept = without_copies(data)
    assert len(kept) == 200
    single = np.unique(X, axis=0, return_counts=True)
    halved = np.unique(data.X[kept], axis=0, return_counts=True)
    np.testing.assert_array_equal(halved[1], single[1])


def test_rows_that_differ_in_a_column_that_was_dropped_are_no_copies(tmp_path):
    X, y = planted(60)
    cells = zip(X[:, 0].round(), X[:, 1].round(), y, range(60), strict=True)
    rows = [f"{a},{b},{label},name {number}" for a, b, label, number in cells]
    path = tmp_path / "named.csv"
    path.write_text("\n".join(["a,b,y,name", *rows]))
    data = load(str(path), target="y")
    assert data.columns == ("a", "b")
    assert len(used_rows(data, Request())[0]) == 60
    np.testing.assert_array_equal(near_copies(data.X), np.arange(60))


@pytest.mark.parametrize(
    ("number", "rows", "target"), [(62, 101, "type"), (40945, 1309, "survived")]
)
def test_public_tables_have_folds_of_equal_size(bundled_csv, number, rows, target):
    # In zoo and Titanic, 42 and 220 rows are equal to another row in the columns that are used.
    data = load(str(bundled_csv(number, rows)), target=target)
    used, _ = used_rows(data, Request())
    assert len(used) >= rows - 1
    dealt = DealtRows(data, used, Request())
    assert np.ptp(np.bincount(dealt.folds)) <= 2


def test_nearly_equal_rows_are_one_cluster(tmp_path):
    X, y = planted(200)
    X[100:] = X[:100] + 1e-6
    data = write(tmp_path / "near.csv", X.round(8), np.concatenate([y[:100], y[:100]]))
    dealt = DealtRows(data, np.arange(200), Request())
    np.testing.assert_array_equal(dealt.folds[:100], dealt.folds[100:])
    assert len(np.unique(dealt.clusters())) == 100
    # With rows in pairs the interval is that of half as many rows, wider by the square root of 2.
    losses = np.tile(np.arange(100) % 5 == 0, 2).astype(float)
    labels, folds = np.zeros(200, dtype=int), np.zeros(200, dtype=int)
    found = [
        Losses(labels, folds, regression=False, clusters=clusters).interval(losses)
        for clusters in (dealt.clusters(), np.arange(200))
    ]
    widths = [one.upper - one.lower for one in found]
    assert widths[0] / widths[1] == pytest.approx(2**0.5, rel=0.03)


def test_nothing_wrong_in_few_clusters_is_not_certain():
    none = np.zeros(60, dtype=int)
    losses = Losses(none, none, regression=False, clusters=np.arange(60) // 12)
    assert losses.interval(np.zeros(60)).upper > 0.4  # five clusters
    assert losses.interval(np.zeros(60)).lower == 0
