"""Diagnoses of weights in plain words, for the terminal and the page."""

from __future__ import annotations

from dataclasses import dataclass

from solvable.diagnose import cut_words
from solvable.diagnose.diagnosis import REFUTED, Diagnosed, MatrixDiagnosis
from solvable.diagnose.naming import NAMED, kinds
from solvable.diagnose.tables import estimate_text, probability_text
from solvable.plots.words import counted, listed

CLEAR_LEAD = 2.0  # nats over the runner-up from which a phase is clear: odds of 7


@dataclass(frozen=True)
class Phase:
    """One of the six shapes of a spectrum."""

    name: str  # as in MatrixDiagnosis
    looks: str  # what is seen
    means: str  # what it says of the matrix
    advice: str  # what to do


# The six phases, in the order in which a spectrum leaves noise; collapse last.
PHASES = (
    Phase(
        "random-like",
        "the singular values fill the bulk of a random matrix and none lies beyond its edge, or "
        "none beyond those of the same matrix under random signs",
        "nothing that was learned stands out of the noise: the matrix was hardly trained, is not "
        "used, or what it learned is below the threshold of detection",
        "look whether the matrix is trained and used at all; noise may be in use, as the random rows "
        "of embeddings are; --initial separates noise of the start from noise of the training",
    ),
    Phase(
        "bleeding-out",
        "a bulk of noise, and a value that has only just left it",
        "a feature at the threshold of detection: it is there, but its direction is mostly noise",
        "expect more of it from more data, or from less noise by a stronger weight decay; a cut at "
        "the edge would keep directions that are mostly noise",
    ),
    Phase(
        "bulk+spikes",
        "a bulk of noise, and values clearly beyond its edge",
        "the values beyond the edge are learned features, and the bulk is noise, of the initial "
        "weights or of the training data",
        "see below what a cut at the edge would keep, and measure the loss of the network with it; "
        "if the noise came with training, a stronger weight decay should lower it",
    ),
    Phase(
        "bulk-decay",
        "values go over from the bulk into the outliers without a gap, or decay with neither an "
        "edge nor a power law",
        "many features were learned, and the weaker ones cannot be told from noise one by one",
        "where there is an edge, expect a cut at it to lose features, as some lie below it; judge "
        "training by how the matrix changes, with --initial, rather than by one number",
    ),
    Phase(
        "heavy-tailed",
        "no bulk of noise, and a tail that is a power law",
        "features of all scales were learned, the i-th about as strong as a power of i",
        "read the exponent as that of the features and not as a mark: the best weight decay makes "
        "it smaller, the interpolation peak larger, and equal exponents go with unequal errors",
    ),
    Phase(
        "rank-collapse",
        "nine in ten singular values are zero",
        "few directions are left: a strong penalty, a product of thin factors, or dead units",
        "two thin factors would store the same matrix; if the loss is too large, lower the penalty",
    ),
)


def subject(found: Diagnosed) -> str:
    """What was looked at, such as "42 matrices and 63 vectors"."""
    text = counted(len(found.matrices), "matrix", "matrices")
    if found.vectors:
        text += f" and {counted(len(found.vectors), 'vector')}"
    if not found.complete:
        text += f"; interrupted after {len(found.rows)} of {found.n_arrays} arrays"
        text += f" and {counted(len(found.heads), 'attention head')}" if found.heads else ""
    return text


def counts(found: Diagnosed) -> list[tuple[Phase, tuple[MatrixDiagnosis, ...]]]:
    """Phases that occur, with their matrices."""
    pairs = []
    for phase in PHASES:
        rows = tuple(row for row in found.fitted if row.phase == phase.name)
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
    """What each phase that occurs says of its matrices, those apart whose law is refuted."""
    lines = []
    for phase, rows in counts(found):
        stands = [row for row in rows if row.phase_p_value is None or row.phase_p_value >= REFUTED]
        if stands:
            what = f"{phase.means}. {sentence(phase.advice)}"
            lines.append(f"{phase.name} ({kinds(stands, found.matrices)}): {what}")
    return lines


def sentence(text: str) -> str:
    """Write a clause as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def legend(found: Diagnosed) -> list[str]:
    """What the columns of the table mean, as far as they hold anything."""
    lines = []
    if any(row.log_likelihood_ratio is not None for row in found.fitted):
        lines.append(
            "lead: log-likelihood of the phase over that of the runner-up, in nats; below "
            f"{CLEAR_LEAD:g} the two are hardly told apart."
        )
    if any(row.noise is not None for row in found.fitted):
        lines.append(
            "noise: root of the longer side times the standard deviation of an entry of the noise; "
            "strongest: the feature without the noise, and its 95 % interval."
        )
    if any(row.exponent and row.exponent.spectrum for row in found.fitted):
        lines.append("p: of the power law, which is refuted below 0.1.")
    if any(row.advice for row in found.fitted):
        lines.append(
            "kept: values that a cut at the edge of the bulk would keep, and their share of the "
            "squared norm; cut?: whether such a cut is worth a trial, and if not, why."
        )
    return [" ".join(lines)] if lines else []


def sections(found: Diagnosed) -> list[tuple[str, list[str]]]:
    """Questions with their answers, as far as there are answers."""
    pairs = (
        ("What would a cut at the edge keep?", cut_words.cuts(found)),
        ("How were fused projections split?", cut_words.layouts(found)),
        ("What has changed since the initial weights?", changes(found)),
        ("How sure is it?", doubts(found)),
        ("What was not fitted?", refusals(found)),
    )
    return [(title, sentences) for title, sentences in pairs if sentences]


def changes(found: Diagnosed) -> list[str]:
    """Matrices against their initial weights."""
    compared = [row for row in found.fitted if row.initial is not None and row.initial.text]
    if not found.initial:
        return []
    lines = [f"{row.name}: {row.initial.text}" for row in compared if row.initial]
    most = 12
    if len(lines) > most:
        lines = [*lines[:most], f"{len(lines) - most} more are in the report."]
    return lines


def doubts(found: Diagnosed) -> list[str]:
    """Matrices whose phase may be another one, or whose law is refuted."""
    lines = []
    alike = [
        row for row in found.fitted if row.control and row.control.confirmed < row.control.tested
    ]
    noisy = [
        row
        for row in found.fitted
        if row.noise is None
        and row not in alike
        and row.bulk is not None
        and row.bulk.p_value >= REFUTED
    ]
    if noisy:
        pairs = [
            f"{row.name} ({counted(row.bulk.n_outliers, 'outlier')})" for row in noisy if row.bulk
        ]
        which = listed(pairs) if len(noisy) <= NAMED else kinds(noisy, found.matrices)
        lines.append(
            f"{len(noisy)} in another phase although a bulk of noise with outliers is not refuted "
            f"either: {which}."
        )
    if alike:
        lines.append(
            f"{len(alike)} with values beyond the edge of independent noise that are no features, as "
            "the same matrix under random signs has as large ones: "
            f"{kinds(alike, found.matrices)}."
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
        lines.append(f"{len(close)} hardly told from the runner-up: {which}.")
    refuted = [
        row for row in found.fitted if row.phase_p_value is not None and row.phase_p_value < REFUTED
    ]
    if refuted:
        which = kinds(refuted, found.matrices)
        lines.append(
            f"{len(refuted)} whose best law is still refuted (p below {REFUTED:g}), so that neither "
            f"features nor a cut are read off it: {which}."
        )
    return lines


def refusals(found: Diagnosed) -> list[str]:
    """Why matrices were not fitted, equal reasons together."""
    reasons: dict[str, list[str]] = {}
    for row in found.refused:
        reasons.setdefault(row.reason, []).append(row.name)
    return [f"{listed(names)}: {reason}" for reason, names in reasons.items()]


def remarks(row: MatrixDiagnosis) -> list[str]:
    """Everything else that is known of a matrix, in sentences."""
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
        lines.append(f"Explanations of the tail, log-likelihoods: {', '.join(laws)}.")
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
    """Where the error of the matrix, as an estimate of the signals, is predicted to come from."""
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
        f"Predicted squared matrix error (distance to the learned signals): {share:.0f} % of the "
        "squared norm"
        f"{' (' + ', '.join(shares) + ')' if shares else ''}."
    )


def feature_sentence(row: MatrixDiagnosis) -> str:
    """Strengths of the features after the strongest, with overlaps."""
    shown = row.features[:12]
    texts = [
        f"{estimate_text(feature.strength, interval=False)} ({feature.squared_overlap:.2f})"
        for feature in shown
    ]
    more = len(row.features) - len(shown)
    end = f" and {more} more" if more else ""
    return (
        "Strengths of the features, and in brackets the squared overlap of their vectors with the "
        f"signal: {', '.join(texts)}{end}."
    )
