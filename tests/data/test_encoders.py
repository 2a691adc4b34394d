"""Dates, many categories, sentences and missing values as numbers, fitted on training rows only."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from solvable.data import Preparation, Table
from solvable.data.encoders import (
    EITHER,
    UNCLEAR,
    Dates,
    Levels,
    Words,
    encoder_from_dict,
    encoder_to_dict,
    parse_dates,
    usable_texts,
)
from solvable.data.table import from_columns
from solvable.errors import InvalidData
from solvable.learn.attribution import column_groups

RNG = np.random.default_rng(0)


def text(*values: str | None) -> np.ndarray:
    return np.array(values, dtype=object)


def days(count: int, first: str = "2024-01-01") -> np.ndarray:
    return (np.datetime64(first) + np.arange(count)).astype(str).astype(object)


def test_dates_become_parts() -> None:
    column = text("2024-02-29", "2024-03-01 08:30", None, "2024-03-02T23:00:00+02:00")
    fitted = Dates.fit("seen", column)
    assert fitted is not None
    assert fitted.parts == ("days since 1970", "month", "day of the month", "weekday", "hour")
    expected = [
        [19782, 2, 29, 3, 0],
        [19783, 3, 1, 4, 8.5],
        [19783, 3, 2, 4, 8.5],  # medians of the parts
        [19784, 3, 2, 5, 23],  # clock time as written
    ]
    np.testing.assert_array_equal(fitted.encode(column), expected)
    assert fitted.sentence == (
        "column 'seen': dates, replaced by days since 1970, month, day of the month, weekday, hour"
    )
    assert "1 of 4 dates missing" in fitted.report(column)
    # Parts with one value in the training rows have this value in all rows.
    part = fitted.refit(column[:1])
    np.testing.assert_array_equal(part.encode(column), np.tile([19782, 2, 29, 3, 0], (4, 1)))
    assert part.columns == fitted.columns


def test_days_and_weekdays_are_those_of_the_standard_library() -> None:
    import datetime

    dates = [datetime.date(1600, 1, 1) + datetime.timedelta(days=997 * i) for i in range(200)]
    fitted = Dates.fit("d", text(*map(str, dates)))
    assert fitted is not None
    found = fitted.encode(text(*map(str, dates)))
    epoch = datetime.date(1970, 1, 1)
    expected = [[(day - epoch).days, day.month, day.day, day.weekday()] for day in dates]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "cell",
    ["0000-00-00", "2024-02-30", "9999-12-31", "24-01-01", "2024-01/01", "1.5", "2024", "", "<b>"],
)
def test_cells_that_are_no_dates(cell: str) -> None:
    assert np.isnat(parse_dates(text(cell, None))).all()
    column = np.append(days(40), cell)
    fitted = Dates.fit("d", column)
    assert fitted is not None
    assert np.isfinite(fitted.encode(column)).all()
    assert f"1 texts are no dates from 1600 to 2200 ({cell!r} in row 41)" in fitted.report(column)
    assert fitted.report(column[:40]) == ""
    assert Dates.fit("d", np.append(days(10), [cell] * 3)) is None


def test_two_dates_are_two_groups() -> None:
    column = text(*["2024-01-01", "2024-01-02"] * 10)
    table = from_columns({"day": column})
    assert Preparation.fit(table).columns == ("day=2024-01-01", "day=2024-01-02")


def test_many_texts_become_their_frequency_and_the_most_frequent() -> None:
    column = text(*["a"] * 50, *["b"] * 10, *(f"t{i // 2}" for i in range(38)), None, None)
    fitted = Levels.fit("c", column)
    assert fitted is not None
    assert fitted.columns == ("c=a", "c=b", "c: other", "c: frequency")
    new = text("a", "t3", "never", None)
    expected = [
        [1, 0, 0, np.log10(51)],
        [0, 0, 1, np.log10(3)],
        [0, 0, 1, np.log10(2)],
        [0, 0, 0, 0],
    ]
    np.testing.assert_allclose(fitted.encode(new), expected)
    assert fitted.report(new) == (
        "column 'c': 1 texts occur at most once in the training rows, encoded as rare texts: 'never'"
    )
    assert fitted.report(column) == ""


def test_texts_of_one_percent_of_the_rows_have_a_column_each() -> None:
    # All texts are equally frequent, so the frequency is constant.
    fitted = Levels.fit("c", text(*(f"t{i % 50:02}" for i in range(1000))))
    assert fitted is not None
    assert fitted.columns == tuple(f"c=t{i:02}" for i in range(50))
    # Of 200 texts, half of the rows have the first fifty, and the others are below one percent.
    rare = [f"u{i % 150:03}" for i in range(1000)]
    many = fitted.refit(text(*(f"t{i % 50:02}" for i in range(1000)), *rare))
    assert many.columns == (*(f"c=t{i:02}" for i in range(50)), "c: other", "c: frequency")


def test_sentences_become_words_of_scikit_learn() -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = np.array(["red", "green", "blue", "café", "round"])
    column = text(*(" ".join(RNG.choice(words, 4)) + f" number{i}" for i in range(60)))
    fitted = Words.fit("note", column)
    assert fitted is not None
    assert fitted.words == ("blue", "cafe", "green", "red", "round")
    reference = TfidfVectorizer(strip_accents="unicode", sublinear_tf=True, min_df=5)
    np.testing.assert_allclose(fitted.encode(column), reference.fit_transform(column).toarray())
    assert not fitted.encode(text(None, "none of these")).any()
    assert "no row contains a word" in fitted.report(text("other words"))
    assert Words.fit("note", text(*(f"a{i} b{i} c{i}" for i in range(60)))) is None
    assert fitted.refit(column[:2]).columns == ("note: no word",)
    assert fitted.refit(column[:2]).encode(column).shape == (60, 1)


def full_table(rows: int = 200) -> Table:
    rng = np.random.default_rng(1)
    gappy = np.where(rng.random(rows) < 0.2, np.nan, rng.standard_normal(rows))
    shop = rng.choice([f"shop {i}" for i in range(30)], rows)
    words = rng.choice(["good", "bad", "late", "fine", "quick"], (rows, 4))
    return from_columns(
        {
            "size": rng.standard_normal(rows),
            "gappy": gappy,
            "same": gappy + 1,
            "seen": days(rows),
            "shop": shop.astype(object),
            "note": np.array([" ".join(row) for row in words], object),
            "colour": rng.choice(["red", "blue"], rows).astype(object),
            "key": text(*(f"k{i:03}" for i in range(rows))),
        }
    )


def test_all_kinds_of_columns_together() -> None:
    table = full_table()
    fitted = Preparation.fit(table)
    assert dict(fitted.dropped) == {"key": "a different text in every row, as in an identifier"}
    # Missing values of `same` are missing in the same rows and are marked once.
    assert fitted.gaps == ("gappy",)
    assert "missing values of 'gappy' are marked by columns of 0 and 1" in fitted.treatments
    X = fitted.transform(table)
    assert X.shape == (200, len(fitted.columns))
    assert np.isfinite(X).all()
    assert (X.std(axis=0) > 0).all()
    place = fitted.columns.index("gappy: missing")
    np.testing.assert_array_equal(X[:, place], np.isnan(table.column("gappy")))
    groups = dict(column_groups(fitted))
    assert list(groups) == ["size", "gappy", "same", "colour", "seen", "shop", "note"]
    assert groups["gappy"] == [1, place]
    assert sorted(place for places in groups.values() for place in places) == list(
        range(X.shape[1])
    )
    restored = Preparation.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert restored == fitted
    np.testing.assert_array_equal(restored.transform(table), X)
    assert fitted.refit(table) == fitted


def test_training_rows_alone_determine_the_encoding() -> None:
    # The encoding of the training rows must not change with the other rows of the table.
    table, rows = full_table(), np.arange(0, 200, 2)
    changed = full_table()
    for name in ("shop", "note", "seen"):
        changed.texts[name][1::2] = changed.texts[name][1::2][::-1] + " 2"
    changed.texts["seen"][1::2] = "2031-07-07"
    parts = [Preparation.fit(one).refit(one.rows(rows)) for one in (table, changed)]
    left, right = (part.transform(table.rows(rows)) for part in parts)
    np.testing.assert_array_equal(left, right)


def test_new_rows() -> None:
    table = full_table()
    fitted = Preparation.fit(table)
    new = table.rows(slice(0, 3))
    new.texts["shop"][0], new.texts["seen"][1], new.texts["note"][2] = "<b>new</b>", "soon", None
    np.testing.assert_array_equal(fitted.transform(new)[:, :2], fitted.transform(table)[:3, :2])
    told = " ".join(fitted.report(new))
    assert "'shop': 1 texts occur at most once in the training rows" in told
    assert "'seen': 1 texts are no dates" in told
    with pytest.raises(
        InvalidData, match="1 of 7 columns of the model are not in the data: 'note'"
    ):
        fitted.transform(new.without("note"))


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "code"},
        {"parts": ["century"]},
        {"fills": []},
        {"name": None, "kind": "words", "words": ["a"], "idf": []},
        {"kind": "levels", "counts": []},
    ],
)
def test_damaged_encoders_are_refused(change: dict[str, Any]) -> None:
    fields = Preparation.fit(full_table()).to_dict()
    fields["encoders"][0] |= change
    with pytest.raises(InvalidData, match="is damaged"):
        Preparation.from_dict(fields)
    with pytest.raises((KeyError, ValueError, AttributeError)):
        encoder_from_dict(fields["encoders"][0])


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("%d/%m/%Y", "day/month/year"),
        ("%m/%d/%Y", "month/day/year"),
        ("%d.%m.%y %H:%M", "day/month/year"),
        ("%m/%d/%Y %I:%M %p", "month/day/year"),
        ("%d-%b-%y", "day month year"),
        ("%B %d, %Y", "month day, year"),
        ("%Y-%m-%d", "year-month-day"),
    ],
)
def test_dates_have_the_one_notation_that_fits_all_rows(written: str, form: str) -> None:
    rng = np.random.default_rng(0)
    days = np.datetime64("2019-02-01") + rng.integers(0, 900, 60).astype("timedelta64[D]")
    moments = [day.astype(object) for day in days]
    column = text(*(day.strftime(written) for day in moments))
    fitted = Dates.fit("when", column)
    assert fitted is not None
    assert fitted.form == form
    np.testing.assert_array_equal(parse_dates(column, form).astype("datetime64[D]"), days)
    numbers = dict(zip(fitted.columns, fitted.encode(column).T, strict=True))
    np.testing.assert_array_equal(numbers["when: month"], [day.month for day in moments])
    np.testing.assert_array_equal(numbers["when: weekday"], [day.weekday() for day in moments])
    assert encoder_from_dict(json.loads(json.dumps(encoder_to_dict(fitted)))) == fitted


def test_dates_whose_notation_is_not_clear_are_named() -> None:
    early = [f"{1 + k % 12:02}/{1 + k // 12:02}/{2000 + k}" for k in range(60)]
    mixed = [
        f"{1 + k % 28}/{1 + k % 12}/2020" if k % 2 else f"2020-01-{1 + k % 28:02}"
        for k in range(60)
    ]
    for column, reason in ((early, EITHER), (mixed, UNCLEAR)):
        assert Dates.fit("when", text(*column)) is None
        dropped = usable_texts(from_columns({"when": text(*column)}), {})[2]
        assert dropped == {"when": reason}
