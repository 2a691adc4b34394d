"""Numbers of a diagnosis as text, for the tables of the terminal and the page."""

from __future__ import annotations

import math

from solvable.diagnose.diagnosis import Estimate, MatrixDiagnosis
from solvable.plots.numbers import MISSING, format_number


def size_text(row: MatrixDiagnosis) -> str:
    """Shape, such as "384 x 1536"."""
    return " x ".join(str(side) for side in row.shape) or "scalar"


def lead_text(row: MatrixDiagnosis) -> str:
    """Log-likelihood over the runner-up in nats, such as "12"; above a thousand not to the digit."""
    ratio = row.log_likelihood_ratio
    if ratio is None:
        return MISSING
    return f"{ratio:.1f}" if abs(ratio) < 10 else format_number(ratio, 3 if ratio < 1000 else 2)


def estimate_text(value: Estimate | None, *, interval: bool = True) -> str:
    """Write a number with its interval, or without.

    Examples
    --------
    >>> from solvable.diagnose.diagnosis import Estimate
    >>> estimate_text(Estimate(0.5, 0.47, 0.53)), estimate_text(None)
    ('0.50 (0.47 to 0.53)', '–')
    """
    if value is None:
        return MISSING
    if interval:
        return interval_text(value.value, value.low, value.high)
    return interval_text(value.value, value.low, value.high).partition(" ")[0]


def features_text(row: MatrixDiagnosis) -> str:
    """Number of learned features; a dash where no law tells them from the rest."""
    if row.features:
        return str(len(row.features))
    return "0" if row.noise is not None else MISSING


def strongest_text(row: MatrixDiagnosis, *, interval: bool = True) -> str:
    """Strength of the strongest feature, such as "3.1 (2.8 to 3.4)"."""
    return estimate_text(row.features[0].strength if row.features else None, interval=interval)


def tail_text(row: MatrixDiagnosis, *, interval: bool = True) -> str:
    """Tail exponent of the spectrum with its interval."""
    return estimate_text(row.exponent.spectrum if row.exponent else None, interval=interval)


def tail_p_text(row: MatrixDiagnosis) -> str:
    """Goodness of fit of the power law, such as "0.38"."""
    return probability_text(row.exponent.spectrum_p_value if row.exponent else None)


def kept_text(row: MatrixDiagnosis) -> str:
    """What pruning keeps: values, and their share of the squared norm, such as "40 (61 %)"."""
    if row.advice is None:
        return MISSING
    return f"{row.advice.kept} ({100 * row.advice.kept_share:.0f} %)"


def probability_text(value: float | None) -> str:
    """Write a p-value.

    Examples
    --------
    >>> probability_text(0.384), probability_text(0.005), probability_text(None)
    ('0.38', '0.005', '–')
    """
    if value is None:
        return MISSING
    return f"{value:.2f}" if value >= 0.0095 else f"{value:.3f}"


def interval_text(value: float, low: float, high: float) -> str:
    """Write a value and its interval with the digits that the interval allows.

    Examples
    --------
    >>> interval_text(3.14159, 2.9, 3.4)
    '3.1 (2.9 to 3.4)'
    """
    width = high - low
    if not (math.isfinite(width) and width > 0):
        return format_number(value, 3)
    digits = max(0, -math.floor(math.log10(width / 4)))
    if digits > 5 or abs(value) >= 1e5:
        return f"{value:.3g} ({low:.3g} to {high:.3g})"
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def parts(text: str) -> tuple[str, str]:
    """Value and interval apart.

    Examples
    --------
    >>> parts("3.1 (2.9 to 3.4)"), parts("–")
    (('3.1', '2.9 to 3.4'), ('–', ''))
    """
    value, _, interval = text.partition(" (")
    return value, interval.removesuffix(")")


def facts(row: MatrixDiagnosis) -> list[tuple[str, str]]:
    """Names and values below the picture of a matrix, as far as there are any."""
    exponent = row.exponent
    lead = lead_text(row)
    pairs = [
        ("lead", f"{lead} nats over {row.runner_up}" if row.runner_up else MISSING),
        ("noise", estimate_text(row.noise)),
        ("shrinkage", estimate_text(row.shrinkage) if _positive(row.shrinkage) else MISSING),
        ("features", features_text(row)),
        ("strongest", strongest_text(row)),
        ("tail exponent", tail_text(row)),
        ("p of the power law", tail_p_text(row)),
        ("decay of strengths", estimate_text(exponent.strengths if exponent else None)),
        ("kept by pruning", kept_text(row)),
        ("zeros", str(row.zeros) if row.zeros else MISSING),
    ]
    return [(name, value) for name, value in pairs if value != MISSING]


def _positive(value: Estimate | None) -> bool:
    return value is not None and value.value > 0
