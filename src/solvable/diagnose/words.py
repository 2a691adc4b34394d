"""Sentences about diagnosed weights, for the terminal and the HTML page."""

from __future__ import annotations

from dataclasses import dataclass

from solvable.diagnose import cut_words
from solvable.diagnose.diagnosed import Diagnosed
from solvable.diagnose.diagnosis import INTEGERS, REFUTED, MatrixDiagnosis
from solvable.diagnose.naming import NAMED, kinds
from solvable.diagnose.tables import estimate_text, probability_text
from solvable.plots.words import counted, listed

REFUSED = "What was not fitted?"  # title of the section about matrices without a fit

CLEAR_LEAD = 2.0  # lead in nats above which a phase is certain: odds of 7 to 1


@dataclass(frozen=True)
class Phase:
    """Phase: one of six shapes of a spectrum."""

    name: str  # name as in MatrixDiagnosis.phase
    looks: str  # appearance of the spectrum
    means: str  # meaning for the matrix
    advice: str  # recommended action


# The six phases, from pure noise to no noise; rank-collapse is last.
PHASES = (
    Phase(
        "random-like",
        "the singular values fill the bulk of a random matrix; no value lies beyond its edge, or "
        "beyond the values of the same matrix under random signs",
        "no learned feature is above the noise: the matrix was hardly trained, is not used, or its "
        "features are below the threshold of detection",
        "check whether the matrix is trained and used; the network may use noise, for example random "
        "rows of an embedding; --initial separates initial noise from noise of the training",
    ),
    Phase(
        "bleeding-out",
        "a bulk of noise, and a value just beyond its edge",
        "a feature at the threshold of detection: it was learned, but its direction is mostly noise",
        "more data, or less noise by a stronger weight decay, should make the feature clearer; a cut "
        "at the edge would keep directions that are mostly noise",
    ),
    Phase(
        "bulk+spikes",
        "a bulk of noise, and values clearly beyond its edge",
        "the values beyond the edge are learned features; the bulk is noise from the initial weights "
        "or from the training data",
        "try the cuts that are suggested, and measure the loss of the network with them; if the noise "
        "came from training, a stronger weight decay should lower it",
    ),
    Phase(
        "bulk-decay",
        "values pass from the bulk into the outliers without a gap, or decay with neither an edge nor "
        "a power law",
        "many features were learned, and the weaker ones cannot be separated from noise one by one",
        "a cut at the edge loses features, because some lie below it; judge training by the change of "
        "the matrix, with --initial, rather than by one number",
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
    if found.fitted:
        learned = [row for row in found.fitted if row.features]
        number = f"{len(learned)} of {counted(len(found.matrices), 'matrix', 'matrices')}"
        names = [f"{len(row.features)} in {row.name}" for row in learned]
        which = listed(names) if len(names) <= NAMED else kinds(learned, found.matrices)
        verb = "holds" if len(learned) == 1 else "hold"
        end = f": {which}" if learned else ""
        texts.append(f"{number} {verb} learned features above a bulk of noise{end}.")
        smooth = [row for row in found.fitted if not row.noise and row.phase != PHASES[0].name]
        if smooth:
            verb = "has" if len(smooth) == 1 else "have"
            texts.append(f"{counted(len(smooth), 'matrix', 'matrices')} {verb} no bulk of noise.")
    else:
        texts.append("No matrix could be fitted.")
    if heads := [row for row in found.heads if row.learned]:
        number = f"{len(heads)} of {counted(len(found.heads), 'attention head')}"
        verb = "has" if len(heads) == 1 else "have"
        texts.append(f"{number} {verb} learned directions above noise.")
    return " ".join(texts)


def headline(found: Diagnosed) -> str:
    """Sentence with the number of matrices in each phase."""
    if not found.fitted:
        return "No matrix could be fitted."
    parts = [f"{len(rows)} {phase.name}" for phase, rows in counts(found)]
    if found.refused:
        parts.append(f"{len(found.refused)} not fitted")
    return f"Of {counted(len(found.matrices), 'matrix', 'matrices')}: {', '.join(parts)}."


def meanings(found: Diagnosed) -> list[str]:
    """Sentences with the meaning of each phase that occurs, without matrices whose law is refuted."""
    lines = []
    for phase, rows in counts(found):
        stands = [row for row in rows if row.phase_p_value is None or row.phase_p_value >= REFUTED]
        if stands:
            text = f"{phase.means}. {sentence(phase.advice)}"
            lines.append(f"{phase.name} ({kinds(stands, found.matrices)}): {text}")
    return lines


def sentence(text: str) -> str:
    """Write a clause as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def legend(found: Diagnosed, *, details: bool = True) -> list[str]:
    """Meaning of the table's columns; empty columns are left out."""
    lines = []
    if not details:
        if any(row.advice for row in found.fitted):
            lines.append(
                "strongest: strongest feature without noise, 95 % interval; kept: values that a cut "
                "at the edge of the bulk keeps, and their share of the squared norm."
            )
        return [" ".join([*lines, "--details prints the other columns."])]
    if any(row.log_likelihood_ratio is not None for row in found.fitted):
        lines.append(
            "lead: log-likelihood of the phase minus that of the runner-up, in nats; below "
            f"{CLEAR_LEAD:g} the phase is uncertain."
        )
    if any(row.noise is not None for row in found.fitted):
        lines.append(
            "noise: standard deviation of an entry of the noise times the square root of the longer "
            "side; strongest: strongest feature without noise, and its 95 % interval."
        )
    if any(row.exponent and row.exponent.spectrum for row in found.fitted):
        lines.append("p: goodness of fit of the power law, which is refuted below 0.1.")
    if any(row.advice for row in found.fitted):
        lines.append(
            "kept: values that a cut at the edge of the bulk keeps, and their share of the squared "
            "norm; cut?: yes if this cut is worth a trial, else the reason against it."
        )
    return [" ".join(lines)] if lines else []


def sections(found: Diagnosed) -> list[tuple[str, list[str]]]:
    """Questions with their answers; questions without answers are left out."""
    pairs = (
        ("How were the weights read?", list(found.notes)),
        ("What would a cut at the edge keep?", cut_words.cuts(found)),
        ("Which layouts were assumed?", cut_words.layouts(found)),
        ("What has changed since the initial weights?", changes(found)),
        ("How sure is it?", doubts(found)),
        (REFUSED, refusals(found)),
    )
    return [(title, sentences) for title, sentences in pairs if sentences]


def changes(found: Diagnosed) -> list[str]:
    """Sentences that compare matrices with their initial weights."""
    compared = [row for row in found.fitted if row.initial is not None and row.initial.text]
    if not found.initial:
        return []
    lines = [f"{row.name}: {row.initial.text}" for row in compared if row.initial]
    most = 12
    if len(lines) > most:
        lines = [*lines[:most], f"The report has {len(lines) - most} more."]
    return lines


def doubts(found: Diagnosed) -> list[str]:
    """Sentences about matrices of uncertain phase and about refuted laws."""
    lines = []
    chance = [
        row for row in found.fitted if row.control and row.control.confirmed < row.control.tested
    ]
    noisy = [
        row
        for row in found.fitted
        if row.noise is None
        and row not in chance
        and row.bulk is not None
        and row.bulk.p_value >= REFUTED
    ]
    if noisy:
        pairs = [
            f"{row.name} ({counted(row.bulk.n_outliers, 'outlier')})" for row in noisy if row.bulk
        ]
        which = listed(pairs) if len(noisy) <= NAMED else kinds(noisy, found.matrices)
        lines.append(
            f"{counted(len(noisy), 'matrix', 'matrices')} in another phase, although a bulk of noise "
            f"with outliers is not refuted: {which}."
        )
    if chance:
        lines.append(
            f"{counted(len(chance), 'matrix', 'matrices')} with values beyond the edge of independent "
            "noise that do not count as features, because the same matrix under random signs has "
            f"values as large: {kinds(chance, found.matrices)}."
        )
    close = [
        row
        for row in found.fitted
        if row.runner_up
        and row.log_likelihood_ratio is not None
        and row.log_likelihood_ratio < CLEAR_LEAD
    ]
    if close:
        pairs = [f"{row.name} ({row.phase} or {row.runner_up})" for row in close]
        which = listed(pairs) if len(close) <= NAMED else kinds(close, found.matrices)
        lines.append(f"{counted(len(close), 'matrix', 'matrices')} of uncertain phase: {which}.")
    refuted = [
        row for row in found.fitted if row.phase_p_value is not None and row.phase_p_value < REFUTED
    ]
    if refuted:
        which = kinds(refuted, found.matrices)
        lines.append(
            f"{counted(len(refuted), 'matrix', 'matrices')} whose best law is refuted "
            f"(p below {REFUTED:g}), so that features and cut are not given: {which}."
        )
    return lines


def refusals(found: Diagnosed) -> list[str]:
    """Sentences with the reasons why matrices were not fitted, and the matrices for each reason."""
    reasons: dict[str, list[str]] = {}
    for row in found.refused:
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
    if row.candidates:
        laws = [f"{law.name} {law.log_likelihood:.1f}" for law in row.candidates]
        lines.append(f"Log-likelihoods of the laws, in nats: {', '.join(laws)}.")
    if row.rivals:
        laws = [
            f"{rival.name} {rival.log_likelihood:.1f}"
            + ("" if rival.p_value is None else f" (p = {probability_text(rival.p_value)})")
            for rival in row.rivals
        ]
        lines.append(f"Log-likelihoods of the explanations of the tail: {', '.join(laws)}.")
    if row.errors is not None:
        lines.append(error_sentence(row))
    if row.advice is not None and row.advice.text:
        lines.append(sentence(row.advice.text.rstrip(".")))
    lines += cut_words.remarks(row)
    if row.control is not None and row.control.confirmed:
        lines.append(sentence(row.control.text))
    if row.initial is not None and row.initial.text:
        lines.append(sentence(row.initial.text.rstrip(".")))
    if len(row.features) > 1:
        lines.append(feature_sentence(row))
    return lines + [sentence(note.rstrip(".")) for note in row.notes]


def error_sentence(row: MatrixDiagnosis) -> str:
    """Sentence with the contributions to the matrix's predicted error as an estimate of the signals."""
    parts = row.errors
    assert parts is not None
    total = parts.noise + parts.shrinkage + parts.rotation + (parts.undetected or 0.0)
    named = [
        ("noise in the bulk", parts.noise),
        ("wrong size of the features", parts.shrinkage),
        ("wrong direction of the features", parts.rotation),
        ("features below the threshold", parts.undetected),
    ]
    shares = [f"{name} {100 * value / total:.0f} %" for name, value in named if value and total > 0]
    share = 100 * total / parts.norm if parts.norm > 0 else 0.0
    return (
        f"Predicted squared matrix error (distance to the learned signals): {share:.0f} % of the "
        "squared norm"
        f"{' (of this error: ' + ', '.join(shares) + ')' if shares else ''}."
    )


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
