"""Sentences, table and figures about the columns that the recommended model uses."""

from __future__ import annotations

from solvable.learn.choice_words import with_the
from solvable.learn.importance import Effect
from solvable.learn.results import Learned
from solvable.plots.numbers import format_number
from solvable.plots.tables import Column, Table
from solvable.plots.words import listed

HINT = (
    "Loss: the share of the model's skill on held-out rows (the error of the constant minus that of the "
    "model; for classes the log loss) that is lost when the column is shuffled, with its standard error. "
    "100 % is as bad as the constant. Correlated columns are shuffled together, as they can replace each "
    "other. Only losses clearly above zero and of 1 % or more are listed."
)
"""Explanation below the table of columns."""


def columns_text(columns: tuple[str, ...]) -> str:
    """Write a group of columns, such as "'a'" or "'a', 'b' and 2 more (correlated)"."""
    text = listed([repr(name) for name in columns], 3)
    return f"{text} (correlated)" if len(columns) > 1 else text


def importance_sentences(found: Learned) -> list[str]:
    """Name the columns that the model uses, their effects and interactions; empty if not measured."""
    known = found.explained
    if not known.importance:
        return []
    named = [one for one in known.importance if one.named]
    who = with_the(found.chosen)
    if not named:
        return [
            f"No column clearly matters for {who}: shuffling any of them changes the error little."
        ]
    unused = len(known.importance) - len(named)
    sentences = []
    if unused:
        what = "one does" if unused == 1 else f"{unused} do"
        sentences.append(
            f"Of {len(known.importance)} columns or groups of correlated columns, {what} not clearly "
            f"matter for {who}."
        )
    sentences += [_effect_text(one, found) for one in known.effects[:3]]
    for one in known.interactions:
        first, second = columns_text(one.first), columns_text(one.second)
        sentences.append(
            f"{first} and {second} interact: {100 * one.share:.0f} % of the variance of the predictions "
            "needs both."
        )
    return sentences


def _effect_text(effect: Effect, found: Learned) -> str:
    """State the mean prediction along a column."""
    if effect.label:
        what = f"probability of {effect.label!r}"
        means = [f"{100 * value:.0f} %" for value in effect.means]
    else:
        what = f"prediction of {found.target!r}"
        means = [format_number(value, 3) for value in effect.means]
    if effect.is_text:
        shown = listed([f"{m} for {v!r}" for v, m in zip(effect.values, means, strict=True)], 8)
        return f"The mean {what} is {shown} in {effect.column!r}."
    turn = _turn(effect)
    places = [0, len(means) // 2 if turn is None else turn, len(means) - 1]
    words = ["", "" if turn is None else " (its extreme)", ""]
    shown = listed(
        [f"{means[p]} at {effect.values[p]}{w}" for p, w in zip(places, words, strict=True)]
    )
    many = len(effect.columns) - 1
    with_it = f" and {many} correlated with it" if many else ""
    return f"Along {effect.column!r}{with_it}, the mean {what} is {shown}."


def _turn(effect: Effect) -> int | None:
    """Return the place of an extreme inside the range; None if the effect is nearly monotone."""
    means = effect.means
    ends, size = (means[0], means[-1]), max(means) - min(means)
    away = {
        means.index(max(means)): max(means) - max(ends),
        means.index(min(means)): min(ends) - min(means),
    }
    place = max(away, key=lambda one: away[one])
    return place if away[place] > 0.2 * size else None


def importance_rows(found: Learned) -> list[tuple[str, str, str]]:
    """Return the rows of the table of columns: columns, loss, standard error."""
    rows = []
    for one in found.explained.importance[:10]:
        if one.named:
            value, error = (f"{100 * part:.0f} %" for part in (one.lost, one.error))
            rows.append((columns_text(one.columns), value, f"± {error}"))
    return rows


def importance_table(found: Learned) -> Table:
    """Tabulate the loss of skill if a column is shuffled, for the ten most important columns."""
    numbers = [Column("loss if shuffled", right=True), Column("", right=True)]
    return Table.of("columns", *numbers, rows=importance_rows(found))
