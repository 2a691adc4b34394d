"""Encode columns of dates, of many categories and of sentences as numbers, fitted on training rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from solvable.data.columns import MANY_TEXTS, text_reason
from solvable.data.table import Table
from solvable.data.target_means import Means
from solvable.errors import InvalidData
from solvable.plots.words import quoted_names

TOP = 100  # largest number of texts of a column with many texts that get a column of their own
MOST_WORDS = 100  # largest number of words of a column of sentences that get a column each
LEAST_ROWS = 5  # smallest number of rows of a text or a word with a column of its own
LEAST_SHARE = 0.01  # smallest share of the rows of such a text or word

_CLOCK = (
    r"(?:[T ,]+(?P<clock>\d{1,2}:\d{2}(?::\d{2})?)(?:[.,]\d+)? ?(?P<half>[AaPp][Mm])? ?"
    r"(?:Z|UTC|[+-]\d{2}:?\d{2})?)?"
)
_MONTH = r"(?P<name>[A-Za-z]{3})[a-z]*\.?"
_YEAR = r"(?P<year>\d{4}|\d{2})"
FORMS = {
    "year-month-day": r"(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d{2})(?P=mark)(?P<day>\d{2})",
    "day/month/year": rf"(?P<day>\d{{1,2}})(?P<mark>[-/.])(?P<month>\d{{1,2}})(?P=mark){_YEAR}",
    "month/day/year": rf"(?P<month>\d{{1,2}})(?P<mark>[-/.])(?P<day>\d{{1,2}})(?P=mark){_YEAR}",
    "day month year": rf"(?P<day>\d{{1,2}})\.?[- /]{_MONTH}[- /,]+{_YEAR}",
    "month day, year": rf"{_MONTH} (?P<day>\d{{1,2}}),? {_YEAR}",
}
"""Notations of dates; a column has one."""

_PATTERNS = {form: re.compile(text + _CLOCK, re.ASCII) for form, text in FORMS.items()}
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
UNCLEAR = "looks like dates, but not all of them can be read in one of the notations " + ", ".join(
    FORMS
)
EITHER = "looks like dates, but which number is the month is not clear; write 2023-01-28"


def form_of(column: np.ndarray) -> str:
    """Return the notation of a column of dates; a reason if it is not clear, "" for other texts."""
    present = [value for value in column if value is not None]
    head = present[:20]
    if not head or not any(
        _PATTERNS[form].fullmatch(text.strip()) for form in FORMS for text in head
    ):
        return ""
    # A few cells that are no dates, such as 0000-00-00, count as missing.
    shares = {form: (~np.isnat(parse_dates(column, form))).sum() / len(present) for form in FORMS}
    fitting = [form for form, share in shares.items() if share >= 0.95]
    whole = [form for form in fitting if shares[form] == max(shares.values())]
    if len(whole) == 1:
        return whole[0]
    if whole:
        return EITHER
    return UNCLEAR if sum(shares.values()) > 0.8 else ""


@dataclass(frozen=True)
class Dates:
    """Parts of dates; missing ones get the median over the training rows."""

    name: str
    parts: tuple[str, ...]  # names of the parts
    fills: tuple[float, ...]  # median of each part over the training rows
    still: tuple[bool, ...]  # True for parts with one value in the training rows, given to all rows
    form: str = "year-month-day"  # notation

    @classmethod
    def fit(cls, name: str, column: np.ndarray) -> Dates | None:
        """Choose the parts that vary; None if the column does not contain dates."""
        form = form_of(column)
        if form not in FORMS:
            return None
        moments = parse_dates(column, form)
        known = moments[~np.isnat(moments)]
        if len(np.unique(known)) < 3:  # two dates are two groups
            return None
        numbers = _date_parts(moments)
        varying = tuple(part for part, values in numbers.items() if not _is_still(values))
        if not varying:
            return None
        empty = cls(name, varying, (0.0,) * len(varying), (False,) * len(varying), form)
        return empty.refit(column)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of numbers."""
        return tuple(f"{self.name}: {part}" for part in self.parts)

    @property
    def sentence(self) -> str:
        """Description of the encoding."""
        written = f" written {self.form}" if self.form != "year-month-day" else ""
        return f"column {self.name!r}: dates{written}, replaced by {', '.join(self.parts)}"

    def refit(self, column: np.ndarray) -> Dates:
        """Fit the medians again; the parts stay the same."""
        numbers = _date_parts(parse_dates(column, self.form))
        values = [numbers[part][~np.isnan(numbers[part])] for part in self.parts]
        fills = tuple(float(np.median(one)) if len(one) else 0.0 for one in values)
        return replace(self, fills=fills, still=tuple(map(_is_still, values)))

    def encode(self, column: np.ndarray) -> np.ndarray:
        """Return the parts of the dates."""
        numbers = _date_parts(parse_dates(column, self.form))
        parts = []
        for part, fill, still in zip(self.parts, self.fills, self.still, strict=True):
            values = numbers[part]
            parts.append(
                np.full(len(values), fill) if still else np.where(values != values, fill, values)
            )
        return np.column_stack(parts)

    def report(self, column: np.ndarray) -> str:
        """Count the missing dates, and name the first cell that is no date."""
        missing = np.isnat(parse_dates(column, self.form))
        wrong = missing & np.array([value is not None for value in column], dtype=bool)
        count = int(np.count_nonzero(missing))
        if count and not wrong.any():
            missed = f"{count} of {len(column)} dates missing"
            return f"column {self.name!r}: {missed}, replaced by the median of the training rows"
        if not count:
            return ""
        first = int(np.argmax(wrong))
        return (
            f"column {self.name!r}: {np.count_nonzero(wrong)} texts are no dates from 1600 to 2200 "
            f"({str(column[first])[:40]!r} in row {first + 1}) and count as missing"
        )


@dataclass(frozen=True)
class Levels:
    """Frequency of a text in the training rows, and columns of 0 and 1 for the most frequent texts."""

    name: str
    counts: Mapping[str, int]  # number of training rows of each text that occurs twice or more
    top: tuple[str, ...]  # most frequent texts
    others: bool  # True if the other texts have a column
    frequency: bool  # True if the frequency has a column

    @classmethod
    def fit(cls, name: str, column: np.ndarray) -> Levels | None:
        """Count the texts; None if nearly every text occurs once."""
        present = [text for text in column if text is not None]
        nearly_all = 0.9  # share of distinct texts above which frequencies carry nothing
        if len(set(present)) > nearly_all * len(present):
            return None
        return cls(name, {}, (), False, True).refit(column)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of numbers."""
        ones = [f"{self.name}={text}" for text in self.top]
        more = [f"{self.name}: other"] * self.others
        return (*ones, *more, *[f"{self.name}: frequency"] * self.frequency)

    @property
    def sentence(self) -> str:
        """Description of the encoding."""
        parts = ["its frequency"] * self.frequency
        if self.top:
            count = len(self.top) + self.others
            word = "column" if count == 1 else "columns"
            rest = ", one of them for all other texts" * self.others
            parts.append(f"{count} {word} of 0 and 1 for the most frequent texts{rest}")
        elif self.others:
            parts.append("a column that is 1 where there is a text")
        return f"column {self.name!r}: text of many values, replaced by {' and '.join(parts)}"

    def refit(self, column: np.ndarray) -> Levels:
        """Count the texts of the training rows again."""
        counts = Counter(text for text in column.tolist() if text is not None)
        rows = len(column)
        least = max(LEAST_ROWS, LEAST_SHARE * rows)
        ordered = sorted(counts, key=lambda text: (-counts[text], text))[:TOP]
        top = tuple(text for text in ordered if counts[text] >= least)
        rest = counts.total() - sum(counts[text] for text in top)
        missing = rows - counts.total()
        # Without missing texts, the columns of all texts add up to 1, and one is redundant if no text
        # is left over.
        others = 0 < rest < rows and (rest >= least or not top)
        different = {max(counts[text], 1) for text in counts} | ({0} if missing else set())
        frequency = len(different) > 1 or not (top or others)
        repeated = {text: count for text, count in counts.items() if count > 1}
        return replace(self, counts=repeated, top=top, others=others, frequency=frequency)

    def encode(self, column: np.ndarray) -> np.ndarray:
        """Return 0 or 1 for each frequent text and the others, and the logarithm of the frequency."""
        values = np.array([[text == one for one in self.top] for text in column], float)
        parts = [values.reshape(len(column), len(self.top))]
        if self.others:
            known = {None, *self.top}
            parts.append(np.array([[text not in known] for text in column], float))
        if self.frequency:
            # log10 of one plus the number of training rows with the text. A text that was not seen
            # counts as seen once, as a rare one was.
            seen = [0 if text is None else self.counts.get(text, 1) for text in column]
            parts.append(np.log10(1.0 + np.array(seen, float))[:, None])
        return np.hstack(parts)

    def report(self, column: np.ndarray) -> str:
        """Count the texts that occurred at most once in training."""
        rare = {text for text in column if text is not None and text not in self.counts}
        if not rare:
            return ""
        return (
            f"column {self.name!r}: {len(rare)} texts occur at most once in the training rows, encoded "
            f"as rare texts: {quoted_names(sorted(rare))}"
        )


@dataclass(frozen=True)
class Words:
    """TF-IDF weights of the most frequent words of a column of sentences."""

    name: str
    words: tuple[str, ...]
    idf: tuple[float, ...]  # inverse document frequency of each word among the training rows

    @classmethod
    def fit(cls, name: str, column: np.ndarray) -> Words | None:
        """Choose the words; None if the column does not contain different sentences with equal words."""
        present = [text for text in column if text is not None]
        sentence = 3  # smallest mean number of words, separated by blanks
        if 2 * len(set(present)) < len(present) or not present:
            return None
        if np.mean([len(text.split()) for text in present]) < sentence:
            return None
        fitted = cls(name, (), ()).refit(column)
        return fitted if fitted.words else None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of numbers."""
        return tuple(f"{self.name}: {word}" for word in self.words) or (f"{self.name}: no word",)

    @property
    def sentence(self) -> str:
        """Description of the encoding."""
        count = len(self.words)
        return f"column {self.name!r}: sentences, replaced by the TF-IDF weights of {count} words"

    def refit(self, column: np.ndarray) -> Words:
        """Choose the words again, by their frequency in the training rows."""
        least = int(np.ceil(max(LEAST_ROWS, LEAST_SHARE * len(column))))
        nearly_all = 0.95  # share of the rows above which a word is left out
        try:
            fitted = _vectorizer(min_df=least, max_df=nearly_all, max_features=MOST_WORDS)
            fitted.fit(_written(column))
        except ValueError:  # no word is left
            return replace(self, words=(), idf=())
        words = tuple(map(str, fitted.get_feature_names_out()))
        return replace(self, words=words, idf=tuple(map(float, fitted.idf_)))

    def encode(self, column: np.ndarray) -> np.ndarray:
        """Return the TF-IDF weight of each word; all are 0 if the text is missing."""
        if not self.words:
            return np.zeros((len(column), 1))
        fitted = _vectorizer(vocabulary=list(self.words))
        fitted.idf_ = np.array(self.idf)
        return np.asarray(fitted.transform(_written(column)).toarray())

    def report(self, column: np.ndarray) -> str:
        """Report that no row contains a word of the training rows."""
        if len(column) and not self.encode(column).any():
            return f"column {self.name!r}: no row contains a word that was used in training"
        return ""


Encoder: TypeAlias = Dates | Levels | Words | Means
"""Encoding of one column of texts by one or more columns of numbers, fitted on training rows."""


def usable_texts(
    table: Table, further_texts: Mapping[str, frozenset[str]]
) -> tuple[tuple[tuple[str, tuple[str, ...]], ...], tuple[Encoder, ...], dict[str, str]]:
    """Return texts of columns with few texts, encoders of others, and reasons for unusable ones."""
    usable = []
    encoders: list[Encoder] = []
    unusable = {}
    for name, column in table.texts.items():
        others = further_texts.get(name, frozenset())
        dates = Dates.fit(name, column)
        reason = text_reason(column, others)
        encoder: Encoder | None = dates
        if encoder is None and reason in MANY_TEXTS:
            form = form_of(column)
            if form in (UNCLEAR, EITHER):
                reason = form
            else:
                encoder = Words.fit(name, column) or Levels.fit(name, column)
        if encoder is not None:
            encoders.append(encoder)
        elif reason:
            unusable[name] = reason
        else:
            texts = others.union(value for value in column if value is not None)
            usable.append((name, tuple(sorted(texts))))
    return tuple(usable), tuple(encoders), unusable


def encoder_to_dict(one: Encoder) -> dict[str, Any]:
    """Return an encoding as JSON values for :func:`encoder_from_dict`."""
    return {"kind": type(one).__name__.lower(), **asdict(one)}


def encoder_from_dict(fields: Mapping[str, Any]) -> Encoder:
    """Create an encoding from :func:`encoder_to_dict`; KeyError or ValueError if damaged."""
    name = str(fields["name"])
    if fields["kind"] == "dates":
        parts, fills = tuple(map(str, fields["parts"])), tuple(map(float, fields["fills"]))
        still = tuple(map(bool, fields["still"]))
        form = str(fields.get("form", "year-month-day"))  # models before 0.2 have this notation
        if not set(parts) <= set(PARTS) or not len(parts) == len(fills) == len(still) > 0:
            raise ValueError(f"parts of dates {parts}")
        if form not in FORMS:
            raise ValueError(f"notation of dates {form!r}")
        return Dates(name, parts, fills, still, form)
    if fields["kind"] == "levels":
        counts = {str(text): int(count) for text, count in fields["counts"].items()}
        flags = bool(fields["others"]), bool(fields["frequency"])
        return Levels(name, counts, tuple(map(str, fields["top"])), *flags)
    if fields["kind"] == "words":
        words, idf = tuple(map(str, fields["words"])), tuple(map(float, fields["idf"]))
        if len(words) != len(idf) or len(set(words)) != len(words):
            raise ValueError(f"{len(words)} words with {len(idf)} weights")
        return Words(name, words, idf)
    if fields["kind"] == "means":
        prior = tuple(map(float, fields["prior"]))
        means = {str(text): tuple(map(float, one)) for text, one in fields["means"].items()}
        made = Means(name, int(fields["classes"]), prior, means)
        if {len(one) for one in (prior, *means.values())} != {len(made.columns)}:
            raise ValueError(f"means of {len(prior)} outputs for {made.classes} classes")
        return made
    raise ValueError(f"kind of encoding {fields['kind']!r}")


def parse_dates(column: np.ndarray, form: str = "year-month-day") -> np.ndarray:
    """Parse dates from 1600 to 2200 with the clock time as written; NaT for other cells."""
    known = {text: _parse_date(text, _PATTERNS[form]) for text in set(column.tolist())}
    return np.array([known[text] for text in column.tolist()], dtype="datetime64[s]")


def _parse_date(text: Any, pattern: re.Pattern[str]) -> np.datetime64:
    match = pattern.fullmatch(text.strip()) if isinstance(text, str) else None
    never = np.datetime64("NaT", "s")
    if match is None:
        return never
    found = match.groupdict()
    year = int(found["year"])
    if len(found["year"]) == 2:  # as in POSIX: 69 to 99 are of the last century
        year += 1900 if year > 68 else 2000
    name = (found.get("name") or "").lower()
    month = _MONTHS.index(name) + 1 if name in _MONTHS else int(found.get("month") or 0)
    hour, _, rest = (found["clock"] or "00:00").partition(":")
    late = {"pm": 12, "am": 0}.get((found["half"] or "").lower())
    number = int(hour) if late is None else int(hour) % 12 + late
    if not 1600 <= year <= 2200:
        return never
    try:
        day = int(found["day"])
        return np.datetime64(f"{year:04}-{month:02}-{day:02}T{number:02}:{rest}", "s")
    except ValueError:  # 30 February
        return never


PARTS = ("days since 1970", "month", "day of the month", "weekday", "hour")
"""Parts of a date; Monday is weekday 0, and the hour has a fraction."""


def _date_parts(moments: np.ndarray) -> dict[str, np.ndarray]:
    """Return each part as a number, with NaN for missing dates."""
    days, months = moments.astype("datetime64[D]"), moments.astype("datetime64[M]")
    missing = np.isnat(moments)
    number = days.astype(np.int64)
    parts = (
        number,
        months.astype(np.int64) % 12 + 1,
        (days - months).astype(np.int64) + 1,
        (number + 3) % 7,  # 1970-01-01 was a Thursday
        (moments - days).astype(np.int64) / 3600,
    )
    return {name: np.where(missing, np.nan, part) for name, part in zip(PARTS, parts, strict=True)}


def _is_still(values: np.ndarray) -> bool:
    """Return True if all values other than NaN are equal, or there is none."""
    present = values[~np.isnan(values)]
    return not len(present) or bool(present.min() == present.max())


def _vectorizer(**options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(strip_accents="unicode", sublinear_tf=True, **options)


def _written(column: np.ndarray) -> list[str]:
    return ["" if text is None else str(text) for text in column]


def damaged(error: Exception) -> InvalidData:
    """Return the error about a stored preparation that cannot be read."""
    return InvalidData(
        f"the preparation stored with the model is damaged ({error!r}). Fit the model again."
    )
