"""Sentences and tables that describe columns of the named model, and directions."""

from __future__ import annotations

from collections.abc import Sequence

from solvable.learn.competitors import BLEND, LEARNED
from solvable.learn.importance import Effect
from solvable.learn.request import LEAST_ROWS
from solvable.learn.results import ColumnShare, LayerFound, Learned, SignalOfClass
from solvable.learn.words import is_plural, with_the
from solvable.networks.permutation import DRAWS
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


def owner_sentence(found: Learned) -> str:
    """State whose directions follow, if the recommended model is another; "" otherwise."""
    if found.chosen.key == LEARNED:
        return ""
    if found.chosen.key == BLEND and found.learned.phrase in found.chosen.phrase:
        return "The directions below belong to the learned features, a part of the blend."
    return (
        "The directions below belong to the learned features, which were fitted to all rows too; "
        f"{with_the(found.chosen)} {'do' if is_plural(found.chosen) else 'does'} not use them."
    )


def signal_sentence(layer: LayerFound, found: Learned) -> str:
    """State the number of directions that carry signal."""
    where = f"Filter {layer.number}: " if len(found.found) > 1 else ""
    if layer.number > 1 and not found.found[layer.number - 2].directions:
        return (
            f"{where}not tested. The filter below it found no signal and passed on the directions most "
            "correlated with the target, which would bias the test."
        )
    if layer.directions == 0:
        kept = "only the strongest one" if layer.kept == 1 else f"{layer.kept} of them"
        return (
            f"{where}no direction carries signal about {found.target!r} at this number of rows: none is "
            f"stronger than in all of {DRAWS} shuffles of the target. The model uses "
            f"{kept}; do not interpret it."
        )
    verb = "direction carries" if layer.directions == 1 else "directions carry"
    low, high = min(layer.directions_in_folds), max(layer.directions_in_folds)
    folds = f"{low}" if low == high else f"{low} to {high}"
    inside, rough = f" ({folds} in the training rows of a fold)", ""
    if not low <= layer.directions <= high:
        inside = ""
        more = ", and more rows show more directions" if layer.directions > high else ""
        rough = (
            f" The count is approximate, as some directions are just above that threshold{more}: the "
            f"training rows of a fold give {folds}."
        )
    limit = ""
    if any(_is_open(signal, layer) for signal in layer.signals):
        limit = " The weakest direction tested is above the threshold, so there may be more."
    return (
        f"{where}{layer.directions} {verb} signal about {found.target!r} in "
        f"{found.n_samples} rows{inside}: each is more than "
        f"{layer.threshold:g} times as strong as with shuffled targets.{rough}{limit}"
    )


def _is_open(signal: SignalOfClass, layer: LayerFound) -> bool:
    return bool(signal.ratios) and signal.ratios[-1] > layer.threshold


def ratio_text(value: float | None) -> str:
    """Write a strength divided by its null, such as "5.3 times"."""
    return "" if value is None else f"{format_number(value, 2)} times"


def emergence_text(rows: float | None) -> str:
    """Write the number of rows at which a direction emerges, rounded to two digits."""
    if rows is None:
        return "–"
    return f"below {LEAST_ROWS}" if rows < LEAST_ROWS else f"{float(f'{rows:.1e}'):.0f}"


def lost_text(part: ColumnShare) -> str:
    """Write the share of the signal lost when a column is shuffled, such as "'age' 23 %"."""
    # The estimate of a share may exceed 1.
    return f"{part.column!r} {100 * min(part.lost or 0.0, 1.0):.0f} %"


def _named(columns: Sequence[ColumnShare], count: int) -> list[str]:
    """List the columns that a signal needs, by the signal lost when the column is shuffled."""
    named = sorted((part for part in columns if part.named), key=lambda part: -(part.lost or 0.0))
    return [lost_text(part) for part in named[:count]]


def kinds_sentence(layer: LayerFound, found: Learned) -> str:
    """Explain why there are more directions than columns, and name the columns that the signal needs."""
    if found.image_shape or not layer.columns:
        return ""
    columns = found.n_columns
    more = ""
    if layer.directions > columns:
        more = (
            f"There are more directions ({layer.directions}) than columns ({columns}), because a "
            f"direction is a function of the columns: {columns} directions can be linear, "
            f"{columns * (columns + 1) // 2} can be quadratic, and others have a higher degree. "
        )
    looked = [one for one in layer.strongest if one.confirmed is not None]
    if not looked:
        return more.strip()
    count = sum(bool(one.confirmed) for one in looked)
    seen = (
        f"Of the {len(looked)} directions listed, {count} also carry signal on unseen rows, at 5 % "
        "significance. "
    )
    if len(looked) == 1:
        seen = f"It {'also carries' if count else 'carries no clear'} signal on unseen rows. "
    largest = ", ".join(_named(layer.columns, 5))
    if not largest:
        return f"{more}{seen}The signal of all directions there does not clearly rest on any one column."
    return (
        f"{more}{seen}The signal of all directions there rests on {largest}. Each number is the share of "
        "the signal that is lost when the column is shuffled."
    )


def rest_rows(layer: LayerFound) -> list[tuple[str, str, str, str, str]]:
    """Return the rows of the table of directions: number, unseen signal, columns, linear, found again."""
    rows = []
    for direction in layer.strongest:
        if direction.number > layer.directions or not direction.columns:
            continue
        unseen = "–"
        if direction.unseen is not None:
            shown = f"{100 * direction.unseen:.0f} %"
            unseen = shown if direction.confirmed else "not clear"
        rests = ", ".join(_named(direction.columns, 3)) or "–"
        shares = (direction.straight, direction.again)
        straight, again = ("–" if one is None else f"{100 * one:.0f} %" for one in shares)
        rows.append((str(direction.number), unseen, rests, straight, again))
    return rows


RESTS_ON = (
    "Signal on unseen rows: each direction is matched with the most correlated direction of the model of "
    "each fold, and the signal of the match on the test rows is divided by its signal on the training "
    'rows. "Not clear" means not significantly above zero after correction for all directions; do '
    "not interpret these. Rests on: the share of that signal which is lost when a column is shuffled "
    "among the test rows, for columns with a significant loss. Correlated columns can replace each "
    "other, and then the loss of each is small. Linear: the share of the direction's variance that a "
    "linear function of the columns explains. Found again: the squared correlation with the match, "
    "median over folds; where it is low, directions of similar strength are mixed. These shares do not "
    "predict the effect of changing a column."
)
"""Explanation below the table of directions."""


def class_rows(layer: LayerFound) -> Sequence[tuple[str, str, str, str]]:
    """Return the rows of the table of classes: name, strongest ratio, emergence, directions."""
    rows = []
    for signal in layer.signals:
        more = "more than " if _is_open(signal, layer) else ""
        strongest = ratio_text(signal.strongest)
        emergence = emergence_text(signal.emergence_rows)
        rows.append((signal.label, strongest, emergence, f"{more}{signal.directions}"))
    return rows
