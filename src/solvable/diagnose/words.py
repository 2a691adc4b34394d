"""Sentences about diagnosed weights, for the terminal and the HTML page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from solvable.diagnose.adapters import adapter_sentences
from solvable.diagnose.diagnosed import Diagnosed
from solvable.diagnose.diagnosis import INTEGERS, STRUCTURED, MatrixDiagnosis
from solvable.diagnose.outliers import dead_rows, outlier_text
from solvable.diagnose.tables import estimate_text, probability_text
from solvable.plots.words import counted, listed

REFUSED = "What was not fitted?"  # title of the section about matrices without a fit

# meaning of the first column, for the terminal and the page
AT_LEAST = (
    "at least: directions above the same matrix under random signs of its entries, a lower bound; "
    "in a matrix of noise it is above 0 with a chance of 5 %."
)

CHANGED = (
    "change: Frobenius norm of the change since the initial weights, as a share of theirs; 95 % in: "
    "fewest directions that hold 95 % of its square; new: at least so many are above random signs."
)

NAMED = 3  # largest number of matrices that a sentence names one by one


@dataclass(frozen=True)
class Phase:
    """Phase: one of seven shapes of a matrix."""

    name: str  # name as in MatrixDiagnosis.phase
    looks: str  # appearance of the spectrum
    means: str  # meaning for the matrix
    advice: str  # recommended action


# Six phases from pure noise to no noise, of which rank-collapse is last, and one without a law.
PHASES = (
    Phase(
        "random-like",
        "the singular values fill the bulk of a random matrix; no value lies beyond its edge, or "
        "beyond the values of the same matrix under random signs",
        "no value stands out of noise by this test, which is no sign that the matrix is unused or "
        "untrained",
        "--initial shows what training changed; networks also use matrices whose directions are below "
        "the threshold of detection, and random rows of an embedding",
    ),
    Phase(
        "bleeding-out",
        "a bulk of noise, and a value just beyond its edge",
        "a feature at the threshold of detection: it was learned, but its direction is mostly noise",
        "more data, or less noise by a stronger weight decay, should make the feature clearer",
    ),
    Phase(
        "bulk+spikes",
        "a bulk of noise, and values clearly beyond its edge",
        "the values beyond the edge are learned features; the bulk is noise from the initial weights "
        "or from the training data",
        "if the noise came from training, a stronger weight decay should lower it",
    ),
    Phase(
        "bulk-decay",
        "values pass from the bulk into the outliers without a gap, or decay with neither an edge nor "
        "a power law",
        "many features were learned, and the weaker ones cannot be separated from noise one by one",
        "judge training by the change of the matrix, with --initial, rather than by one number",
    ),
    Phase(
        "heavy-tailed",
        "no bulk of noise, and a tail that is a power law",
        "features of all scales were learned; the strength of the i-th is about a power of i",
        "the exponent describes the features, not the quality of training: the best weight decay "
        "lowers it, the interpolation peak raises it, and equal exponents occur at unequal errors",
    ),
    Phase(
        "rank-collapse",
        "at least nine in ten singular values are zero",
        "few directions are left, because of a strong penalty, thin factors, or dead units",
        "two thin factors would store the same matrix; if the loss is too large, lower the penalty",
    ),
    Phase(
        STRUCTURED,
        "rows or columns of a few frequencies each",
        "a Fourier basis, a table of positions or the like, which random noise does not describe",
        "its lower bound and stable rank are still valid; --initial shows what training changed",
    ),
)


def subject(found: Diagnosed) -> str:
    """Number of arrays that were read, such as "42 matrices and 63 vectors"."""
    text = counted(len(found.matrices), "matrix", "matrices")
    if found.vectors:
        text += f" and {counted(len(found.vectors), 'vector')}"
    if found.integers:
        text += f"; skipped: {counted(len(found.integers), 'array')} of integers"
    if not found.complete:
        text += f"; interrupted after {len(found.rows)} of {found.n_arrays} arrays"
        text += f" and {counted(len(found.heads), 'attention head')}" if found.heads else ""
    return text


def counts(found: Diagnosed) -> list[tuple[Phase, tuple[MatrixDiagnosis, ...]]]:
    """Phases that occur, each with its matrices."""
    pairs = []
    for phase in PHASES:
        rows = tuple(row for row in found.fitted if row.phase == phase.name)
        if rows:
            pairs.append((phase, rows))
    return pairs


def answer(found: Diagnosed) -> str:
    """Main result in one or two sentences: matrices and heads with learned features."""
    texts = []
    changed = [
        row.initial.difference.directions or 0
        for row in found.matrices
        if row.initial is not None and row.initial.difference is not None
    ]
    if changed:
        number = counted(sum(changed), "direction")
        where = f"{sum(map(bool, changed))} of {counted(len(changed), 'matrix', 'matrices')}"
        texts.append(
            f"The change since {found.initial}: at least {number} above random signs, in {where}."
        )
    if bounded := [row for row in found.matrices if row.directions is not None]:
        total = sum(row.directions or 0 for row in bounded)
        none = [row for row in bounded if not row.directions]
        where = (
            f"{len(bounded) - len(none)} of {counted(len(found.matrices), 'matrix', 'matrices')}"
        )
        texts.append(
            f"At least {counted(total, 'direction')} above random signs, in {where}."
            if total
            else "No direction above random signs was found."
        )
        if none and len(none) < len(bounded):
            texts.append(f"None found in {kinds(none, found.matrices)}.")
    if found.fitted and not found.quick:
        learned = [row for row in found.fitted if row.features]
        number = f"{len(learned)} of {counted(len(found.matrices), 'matrix', 'matrices')}"
        names = [f"{len(row.features)} in {row.name}" for row in learned]
        which = listed(names) if len(names) <= NAMED else kinds(learned, found.matrices)
        verb = "holds" if len(learned) == 1 else "hold"
        end = f": {which}" if learned else ""
        texts.append(f"{number} {verb} learned features above a bulk of noise{end}.")
        lawless = (PHASES[0].name, STRUCTURED)
        smooth = [row for row in found.fitted if not row.noise and row.phase not in lawless]
        if smooth:
            verb = "has" if len(smooth) == 1 else "have"
            texts.append(f"{counted(len(smooth), 'matrix', 'matrices')} {verb} no bulk of noise.")
    elif not texts:
        texts.append(headline(found))
    if heads := [row for row in found.heads if row.learned]:
        number = f"{len(heads)} of {counted(len(found.heads), 'attention head')}"
        verb = "has" if len(heads) == 1 else "have"
        texts.append(f"{number} {verb} learned directions above noise.")
    return " ".join(texts)


def alarms(found: Diagnosed) -> list[str]:
    """Sentences about broken weights: entries that are not finite, dead rows, lost directions."""
    broken = [row for row in found.matrices if "entries are not finite" in row.reason]
    dead = [(row, dead_rows(row.outliers)) for row in found.matrices]
    dead = [(row, count) for row, count in dead if count]
    lost = [row for row in found.matrices if _lost(row)]
    lines = []
    if broken:
        lines.append(f"NaN or infinite entries: {listed([row.name for row in broken])}.")
    if dead:
        lines.append(f"Dead rows: {listed([f'{count} in {row.name}' for row, count in dead])}.")
    if lost:
        names = [
            f"{row.name} ({row.initial.directions} to {row.directions})"
            for row in lost
            if row.initial
        ]
        lines.append(f"Lost at least half of their directions: {listed(names)}.")
    return lines


def _lost(row: MatrixDiagnosis) -> bool:
    """True if at least half of the counted directions of the initial weights are gone."""
    before = None if row.initial is None else row.initial.directions
    return bool(before) and row.directions is not None and 2 * row.directions <= (before or 0)


def layouts(found: Diagnosed) -> list[str]:
    """Layouts assumed for fused projections, with the matrices of each."""
    groups: dict[str, list[MatrixDiagnosis]] = {}
    for row in found.matrices:
        if row.layout:
            groups.setdefault(row.layout, []).append(row)
    return [f"{kinds(rows, found.matrices)}: {layout}." for layout, rows in groups.items()]


def headline(found: Diagnosed) -> str:
    """Sentence with the number of matrices in each phase."""
    if not found.fitted and not found.adapters:
        return "No matrix could be fitted."
    parts = [f"{len(rows)} {phase.name}" for phase, rows in counts(found)]
    if found.refused:
        parts.append(f"{len(found.refused)} not fitted")
    if found.adapters:
        parts.append(counted(len(found.adapters), "low-rank adapter"))
    return f"Of {counted(len(found.matrices), 'matrix', 'matrices')}: {', '.join(parts)}."


def meanings(found: Diagnosed) -> list[str]:
    """Sentences with the meaning of each phase that occurs."""
    return [
        f"{phase.name} ({kinds(rows, found.matrices)}): {phase.means}. {sentence(phase.advice)}"
        for phase, rows in counts(found)
    ]


def sentence(text: str) -> str:
    """Write a clause as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def legend(found: Diagnosed, *, details: bool = True) -> list[str]:
    """Meaning of the table's columns; empty columns are left out."""
    lines = [AT_LEAST] + [CHANGED] * bool(found.initial)
    if not details:
        if any(row.features for row in found.fitted):
            lines.append("strongest: strongest feature without noise, 95 % interval.")
        if not found.quick:
            lines.append("--details prints the other columns.")
        return [" ".join(lines)]
    if any(row.noise is not None for row in found.fitted):
        lines.append(
            "noise: standard deviation of an entry of the noise times the square root of the longer "
            "side; strongest: strongest feature without noise, and its 95 % interval."
        )
    if any(row.exponent and row.exponent.spectrum for row in found.fitted):
        lines.append("p: goodness of fit of the power law, which is refuted below 0.1.")
    return [" ".join(lines)]


def sections(found: Diagnosed) -> list[tuple[str, list[str]]]:
    """Questions with their answers; questions without answers are left out."""
    pairs = (
        ("What has changed since the initial weights?", changes(found)),
        ("What do the adapters change?", adapter_sentences(found.adapters)),
        ("How were the weights read?", list(found.notes)),
        ("Which entries, rows and columns stand out?", outlying(found)),
        ("Which ranks does the loss need?", needs(found)),
        ("Which layouts were assumed?", layouts(found)),
        ("How sure is it?", doubts(found)),
        ("What was not read?" if found.quick else REFUSED, refusals(found)),
    )
    return [(title, sentences) for title, sentences in pairs if sentences]


def needs(found: Diagnosed) -> list[str]:
    """Sentences about the ranks that keep the user's loss."""
    ranks = found.needed
    if ranks is None:
        return []
    share = f"{100 * ranks.tolerance:g} %"
    lines = [
        f"The smallest rank of each matrix that keeps the loss {ranks.loss:.4g} within {share}, the "
        f"others as they are ({ranks.evaluations} evaluations): "
        + "; ".join(f"{row.name} {row.rank} of {row.full}" for row in ranks.rows[:12])
        + (f"; {len(ranks.rows) - 12} more are in rows.csv." if len(ranks.rows) > 12 else ".")
    ]
    change = 100 * (ranks.together / ranks.loss - 1)
    lines.append(
        f"All matrices at these ranks at once: the loss is {ranks.together:.4g} ({change:+.2g} %), and "
        f"{100 * ranks.kept:.0f} % of the numbers in these matrices are left."
    )
    if unused := [row.name for row in ranks.rows if not row.rank]:
        lines.append(f"The loss does not need {listed(unused)} at all.")
    return lines


def outlying(found: Diagnosed) -> list[str]:
    """Sentences with the parts that were taken out of matrices, and with their rows of zeros."""
    rows = [row for row in found.matrices if row.outliers]
    most = 12
    lines = [
        f"{row.name}: {listed([outlier_text(o) for o in row.outliers])}." for row in rows[:most]
    ]
    return lines + [f"The report has {len(rows) - most} more."] * (len(rows) > most)


def changes(found: Diagnosed) -> list[str]:
    """Sentences that compare matrices with their initial weights."""
    if not found.initial:
        return []
    compared = [row for row in found.matrices if row.initial is not None and row.initial.text]
    if found.quick:  # the table has the rest
        compared = [
            row for row in compared if row.initial and "times the start" in row.initial.text
        ]
    lines = [f"{row.name}: {row.initial.text}" for row in compared if row.initial]
    most = 12
    if len(lines) > most:
        lines = [*lines[:most], f"The report has {len(lines) - most} more."]
    return lines


def doubts(found: Diagnosed) -> list[str]:
    """Sentences about values beyond the edge that do not count as features."""
    lines = []
    chance = [
        row for row in found.fitted if row.control and row.control.confirmed < row.control.tested
    ]
    if chance:
        lines.append(
            f"{counted(len(chance), 'matrix', 'matrices')} with values beyond the edge of independent "
            "noise that do not count as features, because the same matrix under random signs has "
            f"values as large: {kinds(chance, found.matrices)}."
        )
    return lines


def refusals(found: Diagnosed) -> list[str]:
    """Sentences with the reasons why matrices were not fitted, and the matrices for each reason."""
    reasons: dict[str, list[str]] = {}
    for row in found.refused:
        if found.quick and (not row.reason or row.norm is not None):
            continue  # nothing was to be fitted
        reasons.setdefault(row.reason, []).append(row.name)
    lines = [f"{listed(names)}: {reason}" for reason, names in reasons.items()]
    if found.integers:
        names = listed([row.name for row in found.integers])
        lines.append(
            f"{names}: {INTEGERS} To diagnose such an array, save it as floating-point numbers."
        )
    return lines


def remarks(row: MatrixDiagnosis) -> list[str]:
    """Sentences about a matrix that open on a click on the page."""
    lines = [sentence(row.reason.rstrip("."))] if row.reason else []
    if row.phase_p_value is not None:
        lines.append(f"Goodness of fit of its law: p = {probability_text(row.phase_p_value)}.")
    if row.layout:
        lines.append(f"Assumed layout: {row.layout}.")
    if row.control is not None and row.control.confirmed:
        lines.append(sentence(row.control.text))
    if row.initial is not None and row.initial.text:
        lines.append(sentence(row.initial.text.rstrip(".")))
    if len(row.features) > 1:
        lines.append(feature_sentence(row))
    return lines + [sentence(note.rstrip(".")) for note in row.notes]


def feature_sentence(row: MatrixDiagnosis) -> str:
    """Sentence with the strengths of the features and the overlaps of their vectors."""
    shown = row.features[:12]
    texts = [
        f"{estimate_text(feature.strength, interval=False)} ({feature.squared_overlap:.2f})"
        for feature in shown
    ]
    more = len(row.features) - len(shown)
    end = f" and {more} more" if more else ""
    return (
        "Strengths of the features, in brackets the squared overlap of their vectors with the "
        f"signal: {', '.join(texts)}{end}."
    )


def kinds(
    rows: Sequence[MatrixDiagnosis], among: Sequence[MatrixDiagnosis], most: int = NAMED
) -> str:
    """Write a list of matrices; names that differ only in their numbers are merged."""
    if len(rows) <= min(most, 2):
        return listed([row.name for row in rows])
    mine: dict[str, list[str]] = {}
    for row in rows:
        mine.setdefault(_kind(row.name), []).append(row.name)
    totals = Counter(_kind(row.name) for row in among)
    order = sorted(mine, key=lambda kind: -len(mine[kind]))
    lines = []
    for kind in order[:most]:
        names, total = mine[kind], totals[kind]
        part = f", all {total}" if len(names) == total else f", {len(names)} of {total}"
        lines.append(names[0] if len(names) == 1 else f"{kind}{part}")
    more = sum(len(mine[kind]) for kind in order[most:])
    return "; ".join(lines) + (f"; and {more} more" if more else "")


def _kind(name: str) -> str:
    # Parts of fused arrays, such as "in_proj_weight[query]", are merged as well.
    return re.sub(r"\d+", "*", re.sub(r"\[[a-z ]+\]$", "[*]", name))
