"""Leaks: rows that depend on one another, and columns that reveal the target."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.data import load
from solvable.data.table import from_columns
from solvable.errors import InvalidData
from solvable.fitting.intervals import clustered_interval
from solvable.learn import Request, learn
from solvable.learn.dealt_rows import DealtRows
from solvable.learn.dependent_rows import jump_beyond_neighbours, share_along_a_curve
from solvable.learn.folds import deal_groups, deal_times, nested_rows, united
from solvable.learn.leaks import likeness_of_neighbours, near_copies, telling_columns, tight_groups
from solvable.learn.warning_sentences import ALONG, warnings_of


def write(path, columns):
    lines = zip(*(map(str, column) for column in columns.values()), strict=True)
    path.write_text("\n".join([",".join(columns), *map(",".join, lines)]) + "\n")
    return path


@pytest.mark.parametrize("dimension", [1, 2, 5, 40])
def test_independent_rows_are_hardly_ever_near_copies(dimension):
    found = 0
    for seed in range(20):
        X = np.random.default_rng(seed).standard_normal((200, dimension))
        found += 200 - len(np.unique(near_copies(X)))
    # One false pair is expected in a hundred tables of evenly spread rows; in tails there are fewer.
    assert found <= 3


@pytest.mark.parametrize("noise", [1e-3, 1e-6])
def test_jittered_copies_are_found(noise):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((120, 6)) * [1, 9, 1, 1, 100, 1]
    others = X + noise * rng.standard_normal(X.shape)
    groups = near_copies(np.concatenate([X, others]))
    assert np.array_equal(groups[:120], groups[120:])
    assert len(np.unique(groups)) == 120


def test_rows_of_few_values_are_no_copies():
    X = np.random.default_rng(0).integers(3, size=(300, 4)).astype(float)
    np.testing.assert_array_equal(near_copies(X), np.arange(len(X)))


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_united_is_the_lowest_of_what_is_linked(pairs):
    labels = list(range(10))
    for _ in range(10):  # relaxation until convergence
        for one, other in pairs:
            labels[one] = labels[other] = min(labels[one], labels[other])
    first, second = np.array(pairs, dtype=int).reshape(-1, 2).T
    assert united(10, first, second).tolist() == labels


def test_order_of_rows():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 5))
    classes = np.repeat([0, 1], 200)
    shifted = X + 3 * classes[:, None]
    assert abs(likeness_of_neighbours(shifted, classes, seed=0)[1]) < 4  # sorted by the target
    by_column = np.column_stack([X, np.arange(400)])
    assert abs(likeness_of_neighbours(by_column, None, seed=0)[1]) < 4
    walk = np.cumsum(X, axis=0)
    share, deviation = likeness_of_neighbours(walk, None, seed=0)
    assert share < 0.1
    assert deviation < -10


def test_groups_are_whole_and_times_come_later():
    rng = np.random.default_rng(4)
    groups = rng.integers(25, size=300)
    folds = deal_groups(4, groups, rng.integers(2, size=300), seed=7)
    assert all(len(set(folds[groups == one])) == 1 for one in range(25))
    assert np.bincount(folds, minlength=4).min() > 40
    times = rng.integers(100, size=300)
    folds = deal_times(3, times)
    assert set(folds) == {-1, 0, 1, 2}
    for fold in range(3):
        assert times[folds < fold].max() < times[folds == fold].min()
    rows = np.flatnonzero(folds < 2)
    parts = nested_rows(rows, [20, 60], None, key=(0, 0), groups=groups)
    # In a first part of the rows at most one group is incomplete.
    cut = [
        one
        for one in set(groups[parts[60]])
        if not np.isin(rows[groups[rows] == one], parts[60]).all()
    ]
    assert set(parts[20]) <= set(parts[60])
    assert len(cut) <= 1


def test_interval_of_clusters_covers_where_that_of_rows_does_not():
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(400):
        values = np.repeat(rng.standard_normal(30), 8) + 0.3 * rng.standard_normal(240)
        found = clustered_interval(values, np.repeat(np.arange(30), 8))
        covered += found.lower <= 0 <= found.upper
    # A coverage of 95 % is 380 of 400, with a standard error of 4.4.
    assert 366 < covered < 394


def test_columns_that_tell():
    rng = np.random.default_rng(6)
    y = rng.integers(2, size=240)
    pay = np.where(y == 1, 0.0, rng.standard_normal(240))
    gone = np.where(y == 1, np.nan, rng.standard_normal(240))
    table = {"noise": rng.standard_normal(240), "pay": pay, "gone": gone}
    from solvable.data.table import from_columns

    words = np.array([["no", "yes"][one] for one in y], dtype=object)
    found = telling_columns(from_columns(table | {"word": words}), y, regression=False)
    assert {name for name, _ in found} == {"pay", "gone", "word"}
    target = rng.standard_normal(240)
    table = {"noise": rng.standard_normal(240), "fahrenheit": 32 + 1.8 * target}
    found = telling_columns(from_columns(table), target, regression=True)
    assert [name for name, _ in found] == ["fahrenheit"]


@pytest.mark.usefixtures("learned_features_alone")
def test_labels_of_groups_are_not_learned_from_other_groups(tmp_path):
    rng = np.random.default_rng(7)
    person = np.repeat(np.arange(30), 10)
    X = rng.standard_normal((30, 5))[person] + 0.1 * rng.standard_normal((300, 5))
    ill = rng.integers(2, size=30)[person]
    order = rng.permutation(300)
    columns = {f"x{i}": X[order, i].round(5) for i in range(5)}
    columns |= {"who": [f"p{one}" for one in person[order]], "ill": ill[order]}
    path = write(tmp_path / "people.csv", columns)
    plain = learn(load(path, target="ill"), Request(folds=3))
    apart = learn(load(path, target="ill", groups="who"), Request(folds=3))
    assert plain.learned.error < 0.2
    assert any("tight groups" in one for one in plain.warnings)
    assert any(
        "if it names the source of the rows, add --groups who" in one for one in plain.warnings
    )
    assert apart.learned.lower < 0.5 < apart.learned.upper
    # An interval for independent rows would be as narrow as for 300 coin tosses.
    assert apart.learned.upper - apart.learned.lower > 0.15
    assert "none of its own group" in apart.protocol
    assert not apart.warnings


@pytest.mark.usefixtures("learned_features_alone")
def test_later_rows_are_predicted_from_earlier_ones(tmp_path):
    rng = np.random.default_rng(8)
    days = np.arange("2024-01-01", "2024-09-01", dtype="datetime64[D]")
    X = np.cumsum(rng.standard_normal((len(days), 3)), axis=0)
    price = np.cumsum(rng.standard_normal(len(days)))
    order = rng.permutation(len(days))
    columns = {f"x{i}": X[order, i].round(5) for i in range(3)}
    columns |= {"day": days[order], "price": price[order].round(5)}
    path = write(tmp_path / "walk.csv", columns)
    plain = learn(load(path, target="price"), Request(folds=3))
    data = load(path, target="price", time="day")
    apart = learn(data, Request(folds=3))
    assert plain.learned.error < 0.15
    assert apart.learned.error > 3 * plain.learned.error
    assert apart.learned.test_rows == len(apart.rows) < len(days)
    for fold in range(3):
        tested = apart.rows[apart.row_folds == fold]
        earlier = np.setdiff1d(np.arange(len(days)), apart.rows[apart.row_folds >= fold])
        assert data.times[earlier].max() < data.times[tested].min()


def test_columns_that_say_which_rows_belong_together_are_checked(tmp_path):
    columns = {"a": np.arange(30) % 7 + 0.5, "when": ["soon"] * 30, "y": np.arange(30) % 2}
    path = write(tmp_path / "few.csv", columns)
    with pytest.raises(InvalidData, match=r"contains text that is not a date.*2026-11-22"):
        load(path, target="y", time="when")
    with pytest.raises(InvalidData, match=r"groups 'wen' is not a column.*Did you mean 'when'"):
        load(path, target="y", groups="wen")
    with pytest.raises(InvalidData, match="has 1 groups of rows; allowed: at least 10"):
        learn(load(path, target="y", groups="when"))


@pytest.mark.parametrize(
    ("groups", "rows", "columns", "spread", "heavy"),
    [
        (60, 5, 10, 0.25, False),
        (40, 20, 5, 0.1, False),
        (100, 3, 8, 0.2, False),
        (50, 6, 12, 0.3, True),
    ],
)
@pytest.mark.parametrize("regression", [False, True])
def test_tight_groups_in_a_shuffled_file_are_seen(groups, rows, columns, spread, heavy, regression):
    seen = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        centres = (
            rng.standard_t(3, (groups, columns))
            if heavy
            else rng.standard_normal((groups, columns))
        )
        of_row = rng.permutation(np.repeat(np.arange(groups), rows))
        X = centres[of_row] + spread * rng.standard_normal((groups * rows, columns))
        values = rng.standard_normal(groups) if regression else rng.integers(3, size=groups)
        found = tight_groups(X, values[of_row], regression=regression)
        if found is not None:
            seen += 1
            assert 0.7 * groups <= found[0] <= 1.2 * groups
            assert found[1] < 0.1 < found[2]
        # Groups whose rows have independent targets do not leak.
        own = rng.standard_normal(len(X)) if regression else rng.integers(3, size=len(X))
        assert tight_groups(X, own, regression=regression) is None
    assert seen >= 4


def smooth_tables():
    """Tables of independent rows, with targets from noise to the sign of a column."""
    laws = {
        "normal": lambda rng, size: rng.standard_normal(size),
        "heavy": lambda rng, size: rng.standard_t(2, size),
        "skewed": lambda rng, size: np.exp(1.5 * rng.standard_normal(size)),
        "uniform": lambda rng, size: rng.random(size),
        "whole": lambda rng, size: rng.integers(40, size=size).astype(float),
        "mixed": lambda rng, size: rng.standard_normal(size) + 4 * rng.integers(3, size=size),
        "correlated": lambda rng, size: np.cumsum(rng.standard_normal(size), axis=1),
    }
    for law in laws.values():
        for rows, columns in ((60, 2), (200, 4), (500, 10), (300, 30)):
            for seed in range(2):
                rng = np.random.default_rng(seed)
                X = law(rng, (rows, columns))
                middle = np.median(X, axis=0)
                yield X, rng.integers(2, size=rows)
                yield X, (X[:, 0] > middle[0]).astype(int)
                yield X, ((X[:, 0] > middle[0]) ^ (X[:, 1] > middle[1])).astype(int)


def test_tables_of_independent_rows_have_no_tight_groups():
    alarms = [tight_groups(X, y, regression=False) is not None for X, y in smooth_tables()]
    assert len(alarms) == 168
    assert sum(alarms) <= 2


@pytest.mark.parametrize("name", ["iris", "wine", "breast-cancer", "diabetes"])
def test_known_tables_have_no_tight_groups(name):
    data = load(name)
    assert tight_groups(data.X, data.y, regression=data.kind == "regression") is None


def test_columns_that_were_dropped_are_not_warned_of(tmp_path):
    # Row numbers in a table sorted by its target
    rng = np.random.default_rng(9)
    columns = {"": np.arange(1, 81), "size": rng.standard_normal(80).round(4)}
    columns |= {"kind": np.repeat(["a", "b"], 40)}
    data = load(write(tmp_path / "sorted.csv", columns), target="kind")
    assert data.columns == ("size",)
    dealt = DealtRows(data, np.arange(80), Request(folds=2))
    assert warnings_of(data, dealt, 0) == ((), False)


def test_dates_with_the_year_first_are_read_with_any_separator(tmp_path):
    days = [
        f"2011{mark}{month:02d}{mark}0{1 + month % 9}"
        for month in range(12, 0, -1)
        for mark in "/-."
    ]
    columns = {"a": np.arange(36) % 7 + 0.5, "when": days, "y": np.arange(36) % 2}
    times = load(write(tmp_path / "dates.csv", columns), target="y", time="when").times
    np.testing.assert_array_equal(times, np.repeat(np.arange(12)[::-1], 3))
    columns["when"] = ["03/04/2011"] * 36
    with pytest.raises(InvalidData, match="is not a date"):
        load(write(tmp_path / "odd.csv", columns), target="y", time="when")


def grouped_rows(d, spread, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.repeat(np.arange(80), 12))
    X = rng.standard_normal((80, d))[group] + spread * rng.standard_normal((960, d))
    return X, rng.integers(2, size=80)[group]


@pytest.mark.parametrize(("d", "spread"), [(5, 0.2), (10, 0.3), (10, 0.5), (30, 0.7)])
def test_labels_of_groups_that_overlap_are_seen_in_any_order(d, spread):
    X, y = grouped_rows(d, spread)
    assert tight_groups(X, y, regression=False) is None
    jump = jump_beyond_neighbours(X, y, regression=False)
    assert jump is not None
    assert jump.near < 0.15  # relative to the errors of the constant
    assert jump.far > 0.8


@pytest.mark.parametrize("d", [5, 10, 20])
def test_shuffled_walks_lie_along_a_curve(d):
    rng = np.random.default_rng(1)
    X = rng.permutation(np.cumsum(rng.standard_normal((800, d)), axis=0))
    assert share_along_a_curve(X) > ALONG


def normal_inputs():
    for seed in range(3):
        for d in (2, 3, 5, 10, 30):
            yield np.random.default_rng([seed, d]).standard_normal((1000, d))


def smooth_functions():
    for X in normal_inputs():
        for slope in (1, 3, 6):
            yield X, np.sin(slope * X[:, 0]), True
            yield X, (np.sin(slope * X).sum(axis=1) > 0).astype(int), False


def test_functions_of_independent_rows_have_no_jump():
    tables = [*smooth_functions(), *((X, y, False) for X, y in smooth_tables())]
    assert len(tables) == 258
    alarms = [jump_beyond_neighbours(X, y, regression=kind) is not None for X, y, kind in tables]
    assert sum(alarms) <= 2
    assert max(share_along_a_curve(X) for X in normal_inputs()) < ALONG


@pytest.mark.parametrize("name", ["iris", "wine", "breast-cancer", "diabetes", "digits"])
def test_known_tables_have_neither(name):
    data = load(name)
    assert jump_beyond_neighbours(data.X, data.y, regression=data.kind == "regression") is None
    assert share_along_a_curve(data.X) < ALONG


@pytest.mark.usefixtures("learned_features_alone")
def test_groups_have_a_warning_and_no_forecast(tmp_path):
    X, y = grouped_rows(10, 0.4)
    columns = {f"x{j}": X[:, j].round(5) for j in range(10)} | {"y": np.where(y, "a", "b")}
    found = learn(load(write(tmp_path / "groups.csv", columns), target="y"), Request(folds=2))
    assert found.learned.error < 0.1  # the true error is one half
    assert "rows seem to come in groups" in found.warnings[0]
    assert not found.outlook.expected
    assert "--groups" in found.outlook.verdict


def test_a_column_of_two_values_that_tells_is_named():
    rng = np.random.default_rng(3)
    y = rng.integers(2, size=1000)
    flag = np.where(rng.random(1000) < 0.024, 1 - y, y).astype(float)
    usual = y + 0.8 * rng.standard_normal(1000)
    table = from_columns({"flag": flag, "usual": usual})
    assert [name for name, _ in telling_columns(table, y, regression=False)] == ["flag"]
