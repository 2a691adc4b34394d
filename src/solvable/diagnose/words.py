"""Diagnoses of weights in plain words, for the terminal and the page."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from solvable.diagnose.cells import estimate_text, probability_text
from solvable.diagnose.diagnosis import MatrixDiagnosis
from solvable.diagnose.phases import PHASES, Phase
from solvable.diagnose.result import Diagnosed

NAMED = 3
"""Matrices that a sentence names; of more, the number is told."""

MOST_CHANGES = 12
"""Comparisons with initial weights that the terminal shows."""

MOST_FEATURES = 12
"""Features whose strengths are listed."""

CLEAR_LEAD = 2.0
"""Log-likelihood over the runner-up, in nats, from which a phase is told from it: odds of 7."""

REFUTED = 0.02
"""p-value below which a law is refuted."""


def counted(number: int, one: str, many: str = "") -> str:
    """Write a number with its noun.

    Examples
    --------
    >>> counted(1, "matrix", "matrices"), counted(3, "vector")
    ('1 matrix', '3 vectors')
    """
    return f"{number} {one if number == 1 else many or one + 's'}"


def listed(names: Sequence[str], most: int = NAMED) -> str:
    """Write names as a list, the first few of many.

    Examples
    --------
    >>> listed(["a", "b"]), listed(["a", "b", "c", "d", "e"])
    ('a and b', 'a, b, c and 2 more')
    """
    if len(names) <= most:
        head, last = names[:-1], names[-1]
        return f"{', '.join(head)} and {last}" if head else last
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def kinds(
    rows: Sequence[MatrixDiagnosis], among: Sequence[MatrixDiagnosis], most: int = NAMED
) -> str:
    """Write which matrices are meant; names that differ in their numbers alone are one kind.

    Parameters
    ----------
    rows : sequence of MatrixDiagnosis
        The matrices, one at least.
    among : sequence of MatrixDiagnosis
        All matrices of the file.
    most : int
        Kinds that are named; of more, the number of matrices is told.

    Returns
    -------
    str
        The most frequent kinds first.

    Examples
    --------
    >>> three = [MatrixDiagnosis(f"layer.{i}.key", (9, 9), "F32", "", "") for i in range(3)]
    >>> kinds(three[:2], three), kinds(three, three)
    ('layer.0.key and layer.1.key', 'layer.*.key, all 3')
    """
    if len(rows) <= min(most, 2):
        return listed([one.name for one in rows])
    mine: dict[str, list[str]] = {}
    for one in rows:
        mine.setdefault(_kind(one.name), []).append(one.name)
    totals = Counter(_kind(one.name) for one in among)
    order = sorted(mine, key=lambda kind: -len(mine[kind]))
    told = []
    for kind in order[:most]:
        names, total = mine[kind], totals[kind]
        part = f", all {total}" if len(names) == total else f", {len(names)} of {total}"
        told.append(names[0] if len(names) == 1 else f"{kind}{part}")
    more = sum(len(mine[kind]) for kind in order[most:])
    return "; ".join(told) + (f"; and {more} more" if more else "")


def _kind(name: str) -> str:
    return re.sub(r"\d+", "*", name)


def subject(found: Diagnosed) -> str:
    """What was looked at, such as "42 matrices and 63 vectors"."""
    text = counted(len(found.matrices), "matrix", "matrices")
    if found.vectors:
        text += f" and {counted(len(found.vectors), 'vector')}"
    if not found.complete:
        text += f"; interrupted after {len(found.rows)} of {found.n_arrays} arrays"
    return text


def counts(found: Diagnosed) -> list[tuple[Phase, tuple[MatrixDiagnosis, ...]]]:
    """Phases that occur, with their matrices."""
    pairs = []
    for phase in PHASES:
        rows = tuple(one for one in found.fitted if one.phase == phase.name)
        if rows:
            pairs.append((phase, rows))
    return pairs


def headline(found: Diagnosed) -> str:
    """How many matrices are in which phase, in a sentence."""
    if not found.fitted:
        return "No matrix could be fitted."
    parts = [f"{len(rows)} {phase.name}" for phase, rows in counts(found)]
    if found.refused:
        parts.append(f"{len(found.refused)} not fitted")
    return f"Of {counted(len(found.matrices), 'matrix', 'matrices')}: {', '.join(parts)}."


def meanings(found: Diagnosed) -> list[str]:
    """What each phase that occurs says of its matrices."""
    return [
        f"{phase.name} ({kinds(rows, found.matrices)}): {phase.means}. {sentence(phase.advice)}"
        for phase, rows in counts(found)
    ]


def sentence(text: str) -> str:
    """Write a clause as a sentence.

    Examples
    --------
    >>> sentence("keep it")
    'Keep it.'
    """
    return f"{text[:1].upper()}{text[1:]}."


def legend(found: Diagnosed) -> list[str]:
    """What the columns of the table mean, as far as they hold anything."""
    told = []
    if any(one.log_likelihood_ratio is not None for one in found.fitted):
        told.append(
            "lead: log-likelihood of the phase over that of the runner-up, in nats; below "
            f"{CLEAR_LEAD:g} the two are hardly told apart."
        )
    if any(one.noise is not None for one in found.fitted):
        told.append(
            "noise: root of the longer side times the standard deviation of an entry of the noise; "
            "strongest: the feature without the noise, and its 95 % interval."
        )
    if any(one.exponent and one.exponent.spectrum for one in found.fitted):
        told.append("p: of the power law, which is refuted below 0.1.")
    if any(one.advice for one in found.fitted):
        told.append("kept: values beyond the bulk, and their share of the squared norm.")
    return [" ".join(told)] if told else []


def sections(found: Diagnosed) -> list[tuple[str, list[str]]]:
    """Questions with their answers, as far as there are answers."""
    pairs = (
        ("What would pruning and denoising do?", pruning(found)),
        ("What has changed since the initial weights?", changes(found)),
        ("How sure is it?", doubts(found)),
        ("What was not fitted?", refusals(found)),
    )
    return [(title, sentences) for title, sentences in pairs if sentences]


def pruning(found: Diagnosed) -> list[str]:
    """What pruning and denoising would keep, over all matrices and where it does most."""
    advised = [one for one in found.fitted if one.advice is not None]
    if not advised:
        return []
    kept = sum(one.advice.kept for one in advised if one.advice)
    values = sum(smaller_side(one) for one in advised)
    told = [f"Cut at the edge of its bulk, {_those(advised)} {kept} of {values} singular values."]
    # Where nothing is kept, nothing but noise is lost; that is not worth a line.
    keeping = [one.advice for one in advised if one.advice and one.advice.kept]
    names = {id(one.advice): one.name for one in advised}
    gains = sorted(keeping, key=lambda advice: -advice.reduction)
    without = len(found.fitted) - len(advised)
    if without:
        verb = "matrix has no bulk" if without == 1 else "matrices have no bulk"
        told.append(f"The other {counted(without, verb, verb)}: there is no edge at which to cut.")
    return told + [f"{names[id(one)]}: {one.text}" for one in gains[:NAMED] if one.text]


def _those(rows: Sequence[MatrixDiagnosis]) -> str:
    if len(rows) == 1:
        return f"{rows[0].name} keeps"
    return f"the {len(rows)} matrices that have one keep"


def smaller_side(row: MatrixDiagnosis) -> int:
    """Number of singular values of a matrix; further axes are joined.

    Examples
    --------
    >>> smaller_side(MatrixDiagnosis("w", (40, 8, 3, 3), "F32", "bulk-decay", ""))
    40
    """
    return min(row.shape[0], math.prod(row.shape[1:])) if len(row.shape) > 1 else 0


def changes(found: Diagnosed) -> list[str]:
    """Matrices against their initial weights."""
    compared = [one for one in found.fitted if one.initial is not None and one.initial.text]
    if not found.initial:
        return []
    told = [f"{one.name}: {one.initial.text}" for one in compared if one.initial]
    if len(told) > MOST_CHANGES:
        told = [*told[:MOST_CHANGES], f"{len(told) - MOST_CHANGES} more are in the report."]
    return told


def doubts(found: Diagnosed) -> list[str]:
    """Matrices whose phase is hardly told from another, or whose law is refuted."""
    told = []
    noisy = [
        one
        for one in found.fitted
        if one.noise is None and one.bulk is not None and one.bulk.p_value >= REFUTED
    ]
    if noisy:
        pairs = [
            f"{one.name} ({counted(one.bulk.n_outliers, 'outlier')})" for one in noisy if one.bulk
        ]
        which = listed(pairs) if len(noisy) <= NAMED else kinds(noisy, found.matrices)
        told.append(
            f"{len(noisy)} in another phase although a bulk of noise with outliers is not refuted "
            f"either: {which}."
        )
    close = [
        one
        for one in found.fitted
        if one.runner_up
        and one.log_likelihood_ratio is not None
        and one.log_likelihood_ratio < CLEAR_LEAD
    ]
    if close:
        pairs = [f"{one.name} ({one.phase} or {one.runner_up})" for one in close]
        which = listed(pairs) if len(close) <= NAMED else kinds(close, found.matrices)
        told.append(f"{len(close)} hardly told from the runner-up: {which}.")
    refuted = [
        one for one in found.fitted if one.phase_p_value is not None and one.phase_p_value < REFUTED
    ]
    if refuted:
        which = kinds(refuted, found.matrices)
        told.append(
            f"{len(refuted)} whose best law is still refuted (p below {REFUTED:g}): {which}."
        )
    return told


def refusals(found: Diagnosed) -> list[str]:
    """Why matrices were not fitted, equal reasons together."""
    reasons: dict[str, list[str]] = {}
    for one in found.refused:
        reasons.setdefault(one.reason, []).append(one.name)
    return [f"{listed(names)}: {reason}" for reason, names in reasons.items()]


def remarks(row: MatrixDiagnosis) -> list[str]:
    """Everything else that is known of a matrix, in sentences."""
    told = [sentence(row.reason.rstrip("."))] if row.reason else []
    if row.phase_p_value is not None:
        told.append(f"Goodness of fit of its law: p = {probability_text(row.phase_p_value)}.")
    if row.candidates:
        laws = [f"{one.name} {one.log_likelihood:.1f}" for one in row.candidates]
        told.append(f"Log-likelihoods of the laws, in nats: {', '.join(laws)}.")
    if row.rivals:
        laws = [
            f"{one.name} {one.log_likelihood:.1f}"
            + ("" if one.p_value is None else f" (p = {probability_text(one.p_value)})")
            for one in row.rivals
        ]
        told.append(f"Explanations of the tail, log-likelihoods: {', '.join(laws)}.")
    if row.errors is not None:
        told.append(error_sentence(row))
    if row.advice is not None and row.advice.text:
        told.append(row.advice.text)
    if row.initial is not None and row.initial.text:
        told.append(sentence(row.initial.text.rstrip(".")))
    if len(row.features) > 1:
        told.append(feature_sentence(row))
    return told + [sentence(one.rstrip(".")) for one in row.notes]


def error_sentence(row: MatrixDiagnosis) -> str:
    """Where the distance to the learned signals is predicted to come from."""
    parts = row.errors
    assert parts is not None
    total = parts.noise + parts.shrinkage + parts.rotation + (parts.undetected or 0.0)
    named = [
        ("noise that is kept", parts.noise),
        ("wrong size of the features", parts.shrinkage),
        ("their wrong direction", parts.rotation),
        ("features below the threshold", parts.undetected),
    ]
    shares = [f"{name} {100 * value / total:.0f} %" for name, value in named if value and total > 0]
    share = 100 * total / parts.norm if parts.norm > 0 else 0.0
    return (
        f"Predicted squared distance to the learned signals: {share:.0f} % of the squared norm"
        f"{' (' + ', '.join(shares) + ')' if shares else ''}."
    )


def feature_sentence(row: MatrixDiagnosis) -> str:
    """Strengths of the features after the strongest, with overlaps."""
    shown = row.features[:MOST_FEATURES]
    texts = [
        f"{estimate_text(one.strength, interval=False)} ({one.squared_overlap:.2f})"
        for one in shown
    ]
    more = len(row.features) - len(shown)
    end = f" and {more} more" if more else ""
    return (
        "Strengths of the features, and in brackets the squared overlap of their vectors with the "
        f"signal: {', '.join(texts)}{end}."
    )
