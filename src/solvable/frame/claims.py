"""Claims: quantitative statements of a system, and the verdicts that records give them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from solvable.frame.points import Point

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
