"""What a system is made of: parameters, records, points, claims, verdicts and figures.

Everything here is plain data, so that a study can store it, a report can draw it and a user's own
system can be one file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from solvable.errors import InvalidData

Metrics = dict[str, float | list[float | None] | str | None]
"""Named results of a replicate or a prediction: numbers, lists, words (such as the name of a phase),
or None where not measured."""


class Parameters(BaseModel):
    """Base of the parameters of a system: frozen, unknown names rejected.

    Each field carries its range, its unit and one line of meaning; the help of the command line is
    made from them.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )


@dataclass(frozen=True)
class Reference:
    """A source that a system rests on.

    Parameters
    ----------
    key : str
        Key of the BibTeX entry.
    bibtex : str
        The whole entry.
    """

    key: str
    bibtex: str


@dataclass(frozen=True)
class Preset:
    """A named grid of a system.

    Parameters
    ----------
    description : str
        One line: what it shows and how long it takes.
    grid : mapping
        Parameter name to the values it takes; the study is their product.
    replicates : int
        Independent repetitions per point.
    """

    description: str
    grid: Mapping[str, Sequence[Any]]
    replicates: int = 3


@dataclass(frozen=True)
class Point:
    """All replicates of a study at one setting of the parameters, beside the prediction there.

    Parameters
    ----------
    parameters : mapping
        Every parameter of the system, by name.
    metrics : sequence of mapping
        One mapping per replicate, as :meth:`System.measure` returned it.
    prediction : mapping
        What :meth:`System.predict` returned.
    """

    parameters: Mapping[str, Any]
    metrics: Sequence[Metrics]
    prediction: Metrics

    @property
    def replicates(self) -> int:
        """Number of replicates."""
        return len(self.metrics)

    def values(self, name: str) -> np.ndarray:
        """Measured values, shape (replicates,) or (replicates, length); None becomes NaN.

        Words have no values: :class:`~solvable.errors.InvalidData`.
        """
        return np.array([_numbers(name, one[name]) for one in self.metrics])

    def mean(self, name: str) -> np.ndarray:
        """Mean over replicates, shape () or (length,)."""
        return self.values(name).mean(axis=0)

    def standard_error(self, name: str) -> np.ndarray:
        """Standard error of the mean; NaN with fewer than two replicates."""
        values = self.values(name)
        if len(values) < 2:
            return np.full(values.shape[1:], np.nan)
        return values.std(axis=0, ddof=1) / np.sqrt(len(values))

    def predicted(self, name: str) -> np.ndarray:
        """Predicted value, shape () or (length,); None becomes NaN, words raise as in `values`."""
        return _numbers(name, self.prediction[name])


def _numbers(name: str, value: float | list[float | None] | str | None) -> np.ndarray:
    if isinstance(value, str):  # NumPy would read words such as "nan" or "1" as numbers
        raise InvalidData(
            f"metric {name!r} is the word {value!r}; allowed: a number or a list. Read words from "
            "the point's `metrics` or `prediction`."
        )
    return np.asarray(value, dtype=float)


Status = Literal["holds", "fails", "not testable"]


@dataclass(frozen=True)
class Verdict:
    """Outcome of one claim on the records of a study.

    Parameters
    ----------
    claim : str
        Name of the claim.
    statement : str
        The claim in one sentence.
    status : {"holds", "fails", "not testable"}
        The outcome.
    measured, standard_error, expected, tolerance : float or None
        The claim holds if ``|measured - expected| <= tolerance``, unless ``reason`` says otherwise.
    reason : str
        Why the tolerance is what it is, or why the claim cannot be tested on these records.
    source : str
        Where the claim comes from.
    replicates : int
        Number of replicates behind the measured value.
    kind : {"equal", "at least", "at most"}
        How measured and expected are compared, as in :class:`Finding`.
    """

    claim: str
    statement: str
    status: Status
    measured: float | None = None
    standard_error: float | None = None
    expected: float | None = None
    tolerance: float | None = None
    reason: str = ""
    source: str = ""
    replicates: int = 0
    kind: Literal["equal", "at least", "at most"] = "equal"


@dataclass(frozen=True)
class Finding:
    """What a claim's check found; :class:`Claim` turns it into a verdict.

    Parameters
    ----------
    measured, expected, tolerance : float
        The claim holds if ``|measured - expected| <= tolerance``; for ``kind="at least"`` if
        ``measured >= expected - tolerance``; for ``kind="at most"`` if
        ``measured <= expected + tolerance``.
    standard_error : float or None
        Of the measured value.
    replicates : int
        Number of replicates behind it.
    kind : {"equal", "at least", "at most"}
        How measured and expected are compared.
    detail : str
        Where the largest deviation was, in words.
    """

    measured: float
    expected: float
    tolerance: float
    standard_error: float | None = None
    replicates: int = 1
    kind: Literal["equal", "at least", "at most"] = "equal"
    detail: str = ""

    @property
    def holds(self) -> bool:
        """Whether the measured value is within the tolerance."""
        difference = self.measured - self.expected
        if self.kind == "at least":
            return bool(difference >= -self.tolerance)
        if self.kind == "at most":
            return bool(difference <= self.tolerance)
        return bool(abs(difference) <= self.tolerance)


@dataclass(frozen=True)
class NotTestable:
    """A claim that these records cannot test, and why.

    Parameters
    ----------
    reason : str
        What is missing, and which setting would test it.
    """

    reason: str


@dataclass(frozen=True)
class Claim:
    """One quantitative statement of a system.

    Parameters
    ----------
    name : str
        Short identifier, words joined by hyphens.
    statement : str
        The claim in one sentence.
    source : str
        arXiv id and equation, or "derived".
    tolerance_reason : str
        Why the tolerance is what it is.
    check : callable
        ``check(points) -> Finding | NotTestable``.
    """

    name: str
    statement: str
    source: str
    tolerance_reason: str
    check: Callable[[Sequence[Point]], Finding | NotTestable]

    def verdict(self, points: Sequence[Point]) -> Verdict:
        """Evaluate the claim on the points of a study."""
        found = self.check(points)
        if isinstance(found, NotTestable):
            return Verdict(
                self.name, self.statement, "not testable", reason=found.reason, source=self.source
            )
        reason = f"{self.tolerance_reason} {found.detail}".strip()
        return Verdict(
            self.name,
            self.statement,
            "holds" if found.holds else "fails",
            measured=found.measured,
            standard_error=found.standard_error,
            expected=found.expected,
            tolerance=found.tolerance,
            reason=reason,
            source=self.source,
            replicates=found.replicates,
            kind=found.kind,
        )


@dataclass(frozen=True)
class Series:
    """One curve, one set of points with error bars, or one histogram of a figure.

    Parameters
    ----------
    label : str
        Name in the legend.
    x, y : sequence of float
        Coordinates; NaN leaves a gap. For a histogram, ``x`` holds the bin edges, one more than
        ``y``.
    kind : {"line", "dashed", "points", "histogram"}
        Theory is a line (or dashed for a variant), measurement is points.
    error : sequence of float, optional
        Standard error of ``y``.
    colour : int
        Series of the same number have the same colour: a prediction and its measurement.
    """

    label: str
    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
    kind: Literal["line", "dashed", "points", "histogram"] = "line"
    error: Sequence[float] | np.ndarray | None = None
    colour: int = 0


@dataclass(frozen=True)
class Marker:
    """A vertical line in a figure, such as a threshold or a bulk edge.

    Parameters
    ----------
    x : float
        Where it stands.
    label : str
        What it marks.
    colour : int
        As in :class:`Series`; -1 is neutral grey.
    """

    x: float
    label: str = ""
    colour: int = -1


@dataclass(frozen=True)
class Figure:
    """A neutral description of a figure, drawn by more than one back end.

    Parameters
    ----------
    name : str
        File name without extension.
    title, caption : str
        Title, and a sentence or two that says what to see.
    x_label, y_label : str
        Axis labels with units.
    series : sequence of Series
        What is drawn.
    markers : sequence of Marker
        Vertical lines.
    x_scale, y_scale : {"linear", "log"}
        Axis scales.
    y_range : tuple of float, optional
        Limits of the vertical axis.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    caption: str = ""
    markers: Sequence[Marker] = field(default_factory=tuple)
    x_scale: Literal["linear", "log"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    y_range: tuple[float, float] | None = None


class System(ABC):
    """Target + learner + theory + claims: one solvable model of the literature.

    A user's own system is a subclass in one file, an instance of which is named in the entry-point
    group ``solvable.systems``.

    Attributes
    ----------
    name : str
        Name on the command line.
    title : str
        One line for a reader.
    version : str
        Part of a task's identity: raise it when ``measure`` changes its numbers.
    references : tuple of Reference
        Sources.
    parameters : type
        Subclass of :class:`Parameters`.
    presets : mapping
        At least ``quick`` (under a minute on two cores).
    claims : tuple of Claim
        What is tested.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    version: ClassVar[str]
    references: ClassVar[tuple[Reference, ...]] = ()
    parameters: ClassVar[type[Parameters]]
    presets: ClassVar[Mapping[str, Preset]]
    claims: ClassVar[tuple[Claim, ...]] = ()

    @abstractmethod
    def measure(self, parameters: Any, rng: np.random.Generator) -> Metrics:
        """Run one replicate; the result depends on the parameters and the generator alone."""

    @abstractmethod
    def predict(self, parameters: Any) -> Metrics:
        """Predict the same metrics, and quantities that only theory knows."""

    def teacher(self, parameters: Any, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
        """Arrays that define the target of one replicate, stored with the study; none by default.

        The generator starts in the state in which :meth:`measure` receives it, so a system whose
        ``measure`` draws its target first returns here exactly the target that was measured.
        """
        return {}

    def figures(self, points: Sequence[Point]) -> list[Figure]:
        """Figures of a study; none unless a system defines them."""
        return []
