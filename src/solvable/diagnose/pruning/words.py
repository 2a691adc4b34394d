"""Sentences and table about pruned weights, for the terminal and the page."""

from __future__ import annotations

from solvable.diagnose.pruning.results import Pruning, Variant
from solvable.plots import tables
from solvable.plots.numbers import MISSING, format_number
from solvable.plots.tables import Table
from solvable.plots.words import counted

QUESTION = "What did the suggested cuts do to the loss?"
WRITTEN = "Which pruned weights were written?"


def title(found: Pruning) -> str:
    """Heading: about the loss if it was measured."""
    return WRITTEN if found.loss is None else QUESTION


def answer(found: Pruning) -> str:
    """Main result in one or two sentences."""
    if not found.variants:
        return found.notes[0] if found.notes else "No weights were written."
    if found.loss is None:
        return (
            f"Written to {found.directory}: {counted(len(found.variants), 'copy', 'copies')} of the "
            "weights. Their loss was not measured; --evaluate FILE.py:FUNCTION measures it."
        )
    known = [one for one in found.variants if one.loss is not None and one.path]
    if not known:
        return "The loss of no written weights could be measured."
    best = found.best
    if best is not None:
        what = f"{best.kind} weights are"
        if best.kind == "alone":
            what = f"cut of {best.matrices[0]} alone is"
        return (
            f"The {what} better: loss {format_number(best.loss or 0.0, 4)} instead of "
            f"{format_number(found.loss, 4)}, in {best.path}."
        )
    first = known[0]
    if first.measured == "not clear":
        return (
            f"No written weights are clearly better; the {label(first)} weights change the loss by "
            f"{_change(first)}, less than two standard errors."
        )
    if first.measured == "no change":
        return (
            f"No written weights are better; the {label(first)} weights change the loss by no more than "
            f"{format_number(found.tolerance or 0.0, 2)}."
        )
    return (
        f"All written weights are worse; the {label(first)} weights raise the loss least, from "
        f"{format_number(found.loss, 4)} to {format_number(first.loss or 0.0, 4)}."
    )


def label(row: Variant) -> str:
    """Name of a variant."""
    return f"{row.matrices[0]} alone" if row.kind == "alone" else row.kind


def sentences(found: Pruning) -> list[str]:
    """Meaning of the rows, the prediction and how often it was right, and what was not done."""
    if not found.variants:
        return []
    size = f"{found.entries:,} entries"
    lines = [
        "pruned: all suggested cuts together; denoised: the same matrices with the best size of each "
        f"value kept. The {counted(len(found.variants[0].matrices), 'matrix', 'matrices')} "
        f"had {size}."
        if found.variants[0].kind != "alone"
        else "pruned: all suggested cuts together; denoised: with the best size of each value kept."
    ]
    factors = [one for one in found.variants if one.kind == "factors"]
    if factors:
        lines.append(
            "factors: NAME is stored as NAME.left and NAME.right, whose product is the pruned array; "
            f"{factors[0].entries:,} instead of {size}."
        )
    lines += _predictions(found)
    if found.loss is not None:
        clear = [one for one in found.variants if one.measured not in ("", "not clear")]
        judged = [one for one in clear if one.predicted]
        right = sum(one.predicted == one.measured for one in judged)
        score = "No row has both a prediction and a clear change."
        if judged:
            count = counted(len(judged), "measured row")
            score = f"The prediction was right for {right} of {count}."
        lines.append(
            f"{score} Changes up to {format_number(found.tolerance or 0.0, 2)} count as none: 0.01 % of "
            "the loss, or three times the difference of two measurements of the original."
        )
        if any(one.measured == "not clear" for one in found.variants):
            lines.append(
                "not clear: the change is within two standard errors over the held-out rows. These rows "
                "do not count for the prediction."
            )
    return lines + list(found.notes)


def _predictions(found: Pruning) -> list[str]:
    return list(
        dict.fromkeys(
            f"Predicted {one.predicted}: {one.because}."
            if one.predicted
            else f"No prediction: {one.because}."
            for one in found.variants
        )
    )


def _change(row: Variant) -> str:
    error = "" if row.error is None else f" ± {row.error:.1g}"
    return f"{row.change or 0.0:+.3g}{error}"


HEADS = ("weights", "loss", "change", "measured", "predicted")


def cells(row: Variant) -> tuple[str, ...]:
    """Texts of a row: name, loss, change, measured effect and predicted effect."""
    loss = MISSING if row.loss is None else format_number(row.loss, 5)
    change = MISSING if row.change is None else _change(row)
    return label(row), loss, change, row.measured or MISSING, row.predicted or "no prediction"


def judged(row: tuple[str, ...]) -> str:
    """Measured and predicted effect of a row; empty for the original weights."""
    _, _, _, effect, expected = row
    if expected == MISSING:
        return ""
    if effect == expected:
        return f"{effect}, as predicted"
    forecast = expected if expected == "no prediction" else f"predicted: {expected}"
    return forecast if effect == MISSING else f"{effect}; {forecast}"


def variant_table(found: Pruning) -> Table:
    """Table of all variants, best first, and the original weights in their place."""
    if found.loss is None:
        table = Table(tables.Column("weights"), tables.Column("entries", right=True), "file")
        for row in found.variants:
            table.add(row.kind, f"{row.entries:,}", row.path or MISSING)
        return table
    table = Table(
        tables.Column("weights", wrap=False),
        *(tables.Column(name, right=name in ("loss", "change"), wrap=False) for name in HEADS[1:]),
    )
    for cell in ranked(found):
        table.add(*cell)
    return table


def ranked(found: Pruning) -> list[tuple[str, ...]]:
    """Rows of the table: better variants, the original, then the others."""
    original = ("original", format_number(found.loss or 0.0, 5), MISSING, MISSING, MISSING)
    lower = [cells(row) for row in found.variants if row.change is not None and row.change < 0]
    rest = [cells(row) for row in found.variants if row.change is None or row.change >= 0]
    return [*lower, original, *rest]


def faults(found: Pruning) -> list[str]:
    """One line for each variant without a loss."""
    return [f"{label(row)}: {row.fault}." for row in found.variants if row.fault]
