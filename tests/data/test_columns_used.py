"""Columns are chosen once, from the whole table, for any training rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from solvable.data import Preparation, Table, load
from solvable.data.table import from_columns

RNG = np.random.default_rng(0)


def text(*values: str | None) -> np.ndarray:
    return np.array(values, dtype=object)


def test_a_column_of_many_texts_is_used_by_all_training_parts_or_by_none(
    bundled_csv: Callable[[int, int], Path],
) -> None:
    # `boat` is the lifeboat of a survivor. It has 27 texts in all rows, and at most 20 in few rows; it
    # is dropped because most of its texts are numbers. `cabin` has 186 texts.
    data = load(bundled_csv(40945, 1309), target="survived")
    assert data.n_samples == 1309
    assert "boat" in dict(data.preparation.dropped)
    boats = data.table.column("boat")
    few = 0
    for size in (24, 80, 160, 300, 600, 1040):
        order = RNG.permutation(data.n_samples)
        train, test = order[:size], order[size:]
        few += len({boat for boat in boats[train] if boat is not None}) <= 20
        part = data.split(train, test)
        assert part.preparation.needed == data.preparation.needed
        assert part.X_train.shape[1] == part.X_test.shape[1] == len(part.preparation.columns)
        assert {"cabin: frequency", "name: mr"} <= set(part.preparation.columns)
        assert not any(name.startswith("boat") for name in part.preparation.columns)
    assert few >= 3  # sizes at which a count in the training rows would have kept the column


def test_columns_do_not_depend_on_the_training_rows() -> None:
    # The reason for dropping or using each column holds in the whole table but not in some rows.
    n = 300
    rare = np.zeros(n)
    rare[:3] = [1e6, 2e6, 3e6]
    table = from_columns(
        {
            "number": RNG.standard_normal(n),
            "counts": np.append(RNG.permutation(900)[: n - 1], 5.0),
            "rare": rare,
            "gappy": np.where(np.arange(n) < 5, np.arange(n), np.nan),
            "colour": text(*["red"] * 4, *["blue", "green"] * ((n - 4) // 2)),
            "letter": text(*(f"t{i % 21}" for i in range(n))),
        }
    )
    counts = table.column("counts")
    counts[-1] = counts[
        0
    ]  # not an identifier of the table, although its values differ within a part
    whole = Preparation.fit(table)
    assert whole.needed == ("number", "counts", "rare", "gappy", "colour", "letter")
    for rows in (np.arange(5, 15), np.arange(5, 299), np.arange(4), np.arange(n)):
        part = whole.refit(table.rows(rows))
        assert part.needed == whole.needed
        assert part.numeric_names == whole.numeric_names
        assert part.dropped == whole.dropped
        assert np.isfinite(part.transform(table)).all()


def test_refitting_all_rows_changes_nothing() -> None:
    numbers = RNG.standard_normal((50, 3))
    numbers[RNG.random((50, 3)) < 0.2] = np.nan
    table = Table(numbers, tuple("abc"), {"word": RNG.choice(["x", "y"], 50).astype(object)})
    whole = Preparation.fit(table)
    assert whole.refit(table) == whole


def test_what_training_rows_have_one_value_of_has_it_in_every_row() -> None:
    # Otherwise a test row would be a million standard deviations from the training rows.
    table = from_columns(
        {
            "size": np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            "dose": np.array([7.0, np.nan, 7.0, 7.0, 1e6, 7.0]),
            "late": np.array([np.nan, np.nan, np.nan, np.nan, 1e6, 2e6]),
            "colour": text("red", "red", "blue", None, "green", "red"),
            "kind": text("a", "a", "a", "a", "b", "a"),
        }
    )
    whole = Preparation.fit(table)
    part = whole.refit(table.rows(slice(0, 4)))
    expected = [
        [1, 7, 0, 0, 0, 1, 1, 0],
        [2, 7, 0, 0, 0, 1, 1, 0],
        [3, 7, 0, 1, 0, 0, 1, 0],
        [4, 7, 0, 0, 0, 0, 1, 0],
        [
            5,
            7,
            0,
            0.25,
            0,
            0.5,
            1,
            0,
        ],  # a row of unseen colour and kind has the shares of the others
        [6, 7, 0, 0, 0, 1, 1, 0],
    ]
    assert part.columns[3:] == ("colour=blue", "colour=green", "colour=red", "kind=a", "kind=b")
    np.testing.assert_array_equal(part.transform(table), expected)
    assert part.treatments[-1] == (
        "constant in all training rows, and set to this value in others: 'dose', 'late', 'colour=green', "
        "'kind=a', 'kind=b'"
    )
    restored = Preparation.from_dict(json.loads(json.dumps(part.to_dict())))
    assert restored == part
    np.testing.assert_array_equal(restored.transform(table), expected)


def test_preparations_of_earlier_versions_are_read() -> None:
    whole = Preparation.fit(Table(RNG.random((9, 2)), ("a", "b")))
    fields = whole.to_dict()
    del fields["still"]
    assert Preparation.from_dict(fields) == whole


def test_pixels_of_images_stay_as_they_are() -> None:
    images = RNG.random((30, 4))
    images[:20, 1] = 0.0
    table = Table(images, tuple("abcd"))
    part = Preparation.fit(table, image_shape=(2, 2)).refit(table.rows(slice(0, 20)))
    np.testing.assert_array_equal(part.transform(table), images)


def test_a_table_of_texts_alone(bundled_csv: Callable[[int, int], Path]) -> None:
    data = load(bundled_csv(3, 3196), target="class")
    assert not data.preparation.numeric_names
    assert len(data.preparation.categories) == 36
    assert data.X.dtype == np.float64
    assert set(np.unique(data.X)) == {0.0, 1.0}
    # Each column of text gives one 1 per row, as no text is missing.
    np.testing.assert_array_equal(data.X.sum(axis=1), 36)
    part = data.split(np.arange(100), np.arange(100, 3196))
    assert part.X_train.shape == (100, data.n_columns)
    # Texts are enough: nearest rows by text nearly always have the same class.
    from sklearn.neighbors import KNeighborsClassifier

    order = RNG.permutation(3196)
    part = data.split(order[:2500], order[2500:])
    model = KNeighborsClassifier(1).fit(part.X_train, part.y_train)
    assert model.score(part.X_test, part.y_test) > 0.85


def test_a_dropped_column_that_is_correlated_with_the_target_is_the_first_warning() -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    size = rng.standard_normal(200)
    number = rng.permutation(200).astype(float)
    for target, warned in ((number + 5 * size, True), (size, False)):
        table = {"size": size, "number": number, "y": target}
        data = load(pandas.DataFrame(table), target="y")
        assert dict(data.preparation.dropped).keys() == {"number"}
        assert data.treatments[0].startswith("column 'number' is dropped") == warned
    classes = load(
        pandas.DataFrame({"size": size, "number": number, "y": number > 100}), target="y"
    )
    assert "although it is correlated with the target (0.8" in classes.treatments[0]


@pytest.mark.parametrize("written", ["%d/%m/%Y", "%Y-%m-%d", "%b %d, %Y"])
def test_times_have_the_notations_of_dates(written: str) -> None:
    pandas = pytest.importorskip("pandas")
    days = np.datetime64("2020-01-10") + 9 * np.arange(60).astype("timedelta64[D]")
    texts = [day.astype(object).strftime(written) for day in days[::-1]]
    frame = pandas.DataFrame({"when": texts, "x": np.arange(60.0) ** 2, "y": np.arange(60.0) % 7})
    data = load(frame, target="y", time="when")
    np.testing.assert_array_equal(data.times, np.arange(60)[::-1])
