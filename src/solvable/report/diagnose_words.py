"""Diagnoses of weights in plain words, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from solvable.analysis.diagnosing import MatrixDiagnosis
from solvable.report.numbers import MISSING, format_number

NAMED = 3
"""Matrices that a sentence names; of more, the number is told."""


@dataclass(frozen=True)
class Phase:
    """One of the six shapes of a spectrum.

    Parameters
    ----------
    name : str
        As in :class:`solvable.analysis.diagnosing.MatrixDiagnosis`.
    looks : str
        What is seen.
    means : str
        What it says of the matrix.
    advice : str
        What to do.
    """

    name: str
    looks: str
    means: str
    advice: str


PHASES = (
    Phase(
        "random-like",
        "the singular values fill the bulk of a random matrix and none lies beyond its edge",
        "nothing that was learned stands out of the noise: the matrix was hardly trained, is not "
        "used, or what it learned is weaker than the threshold of detection",
        "look whether the matrix is trained and used at all; --initial tells noise that was there "
        "from the start from noise that came with training",
    ),
    Phase(
        "bleeding-out",
        "a bulk of noise, and values that have only just left it",
        "features at the threshold: they are there, but their directions are mostly noise",
        "more data or a stronger weight decay, which lower the noise, rather than more training; "
        "do not prune at the edge, because what is kept there is mostly noise",
    ),
    Phase(
        "bulk+spikes",
        "a bulk of noise, and values clearly beyond its edge",
        "so many features were learned, and the rest is noise",
        "the values beyond the edge are what to keep: prune or denoise the rest, and try a "
        "stronger weight decay",
    ),
    Phase(
        "bulk-decay",
        "neither a bulk of noise nor a power law: the spectrum decays in another way",
        "features of all strengths overlap with the noise, and no law tells one from the other",
        "read neither a noise level nor an exponent off it; judge it by its change, with --initial "
        "or along training",
    ),
    Phase(
        "heavy-tailed",
        "no bulk of noise; the largest values follow a power law",
        "features of all scales were learned, the i-th about as strong as a power of i",
        "read the exponent as that of the features, not as a mark: with the best weight decay it is "
        "smaller, near the interpolation peak larger, and equal exponents go with unequal errors",
    ),
    Phase(
        "rank-collapse",
        "nine in ten singular values are zero",
        "few directions are left: a strong penalty, a product of thin factors, or dead units",
        "store it as two thin factors; if the error is too large, lower the penalty",
    ),
)
"""The six phases, from least to most that was learned, and collapse."""

PHASE_NAMES = tuple(one.name for one in PHASES)


@dataclass(frozen=True)
class Diagnosed:
    """The diagnoses of a file.

    Parameters
    ----------
    name : str
        The file.
    rows : tuple of MatrixDiagnosis
        One per array that has been looked at, in the order of the file.
    seed : int
        Of the bootstraps.
    initial : str
        File of the initial weights; empty if there is none.
    seconds : float
        What it took.
    n_arrays : int
        Arrays in the file: more than rows if it was interrupted.
    """

    name: str
    rows: tuple[MatrixDiagnosis, ...]
    seed: int = 0
    initial: str = ""
    seconds: float = 0.0
    n_arrays: int = 0

    @property
    def complete(self) -> bool:
        """Whether every array was looked at."""
        return len(self.rows) >= self.n_arrays

    @property
    def vectors(self) -> tuple[MatrixDiagnosis, ...]:
        """Arrays of one axis, which have no spectrum."""
        return tuple(one for one in self.rows if len(one.shape) == 1)

    @property
    def matrices(self) -> tuple[MatrixDiagnosis, ...]:
        """All others."""
        return tuple(one for one in self.rows if len(one.shape) != 1)

    @property
    def fitted(self) -> tuple[MatrixDiagnosis, ...]:
        """Matrices that have a phase."""
        return tuple(one for one in self.matrices if one.fitted)

    @property
    def refused(self) -> tuple[MatrixDiagnosis, ...]:
        """Matrices that have none."""
        return tuple(one for one in self.matrices if not one.fitted)


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


def subject(found: Diagnosed) -> str:
    """What was looked at, such as "42 matrices and 63 vectors"."""
    text = counted(len(found.matrices), "matrix", "matrices")
    if found.vectors:
        text += f" and {counted(len(found.vectors), 'vector')}"
    if not found.complete:
        text += f"; interrupted after {len(found.rows)} of {found.n_arrays} arrays"
    return text


def size_text(row: MatrixDiagnosis) -> str:
    """Shape, such as "384 x 1536"."""
    return " x ".join(str(side) for side in row.shape) or "scalar"


def noise_text(row: MatrixDiagnosis) -> str:
    """Noise of the bulk; a dash where no bulk is believed."""
    if row.bulk is None or row.tail is not None:
        return MISSING
    return format_number(row.bulk.noise, 3)


def shrinkage_text(row: MatrixDiagnosis) -> str:
    """Shrinkage of the bulk; a dash where no bulk is believed."""
    if row.bulk is None or row.tail is not None:
        return MISSING
    return format_number(row.bulk.shrinkage, 2)


def features_text(row: MatrixDiagnosis) -> str:
    """Number of values beyond the edge."""
    if row.bulk is None or row.tail is not None:
        return MISSING
    return str(row.bulk.n_outliers)


def strongest_text(row: MatrixDiagnosis) -> str:
    """Strongest signal with its interval, such as "3.1 (2.8 to 3.4)"."""
    if row.bulk is None or row.tail is not None or not row.bulk.n_outliers:
        return MISSING
    low, high = row.bulk.spikes.intervals(floor=row.bulk.threshold)[0]
    return interval_text(float(row.bulk.spikes.strengths[0]), float(low), float(high))


def tail_text(row: MatrixDiagnosis) -> str:
    """Tail exponent with its interval and p-value."""
    if row.tail is None:
        return MISSING
    low, high = row.tail.interval
    return f"{row.tail.exponent:.2f} ({low:.2f} to {high:.2f}), p = {row.tail.p_value:.2f}"


def interval_text(value: float, low: float, high: float) -> str:
    """Write a value and its interval with the digits that the interval allows.

    Examples
    --------
    >>> interval_text(3.14159, 2.9, 3.4)
    '3.1 (2.9 to 3.4)'
    """
    import math

    width = high - low
    if not (math.isfinite(width) and width > 0):
        return format_number(value, 3)
    digits = max(0, 1 - math.floor(math.log10(width)))
    if digits > 5 or abs(value) >= 1e5:
        return f"{value:.3g} ({low:.3g} to {high:.3g})"
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


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


def meaning(phase: Phase, rows: Sequence[MatrixDiagnosis]) -> str:
    """What a phase says of its matrices, in two sentences."""
    return f"{phase.name} ({listed([one.name for one in rows])}): {phase.means}. {sentence(phase.advice)}"


def sentence(text: str) -> str:
    """Write a clause as a sentence.

    Examples
    --------
    >>> sentence("keep it")
    'Keep it.'
    """
    return f"{text[:1].upper()}{text[1:]}."


def refusals(found: Diagnosed) -> list[str]:
    """Why matrices were not fitted, equal reasons together."""
    reasons: dict[str, list[str]] = {}
    for one in found.refused:
        reasons.setdefault(one.reason, []).append(one.name)
    return [f"{listed(names)}: {reason}" for reason, names in reasons.items()]
