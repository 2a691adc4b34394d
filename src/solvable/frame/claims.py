"""Claims: quantitative statements of a system, and the verdicts that records give them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from solvable.errors import InvalidParameter
from solvable.frame.points import Point

Status = Literal["holds", "fails", "not testable", "error"]

WEAK = 0.3
"""A claim holds weakly if only a relative error of the prediction above this makes it fail."""

LARGEST_ERROR = 0.9
"""Largest relative error of a prediction that is tried."""

EARLIER = "measured before this metric existed; run again into another directory"
"""Reason why a claim cannot be judged on stored records without its metric."""

OUTCOMES = ("holds", "holds weakly", "fails", "not testable", "error")
"""Words for the outcome of a claim, as tables and counts show it."""


@dataclass(frozen=True)
class Verdict:
    """Outcome of one claim on the records of a study."""

    claim: str
    """Name of the claim."""
    statement: str
    """The claim in one sentence."""
    status: Status
    """The outcome; "error" if the code of the claim raised an exception."""
    measured: float | None = None
    standard_error: float | None = None
    expected: float | None = None
    tolerance: float | None = None
    """The claim holds if ``|measured - expected| <= tolerance``, unless ``reason`` says otherwise."""
    reason: str = ""
    """Reason of the tolerance, reason why the claim cannot be tested on these records, or the exception
    in one line."""
    source: str = ""
    """Place in a paper, or equation of a derivation page."""
    replicates: int = 0
    """Number of replicates behind the measured value."""
    kind: Literal["equal", "at least", "at most"] = "equal"
    """How measured and expected are compared, as in :class:`Finding`."""
    notices: float | None = None
    """Smallest relative error of the prediction with which the claim would have failed on these
    records; None unless the claim holds."""

    @property
    def weak(self) -> bool:
        """True if the claim holds, but would also hold with a prediction wrong by 30 %."""
        return self.status == "holds" and self.notices is not None and self.notices > WEAK

    @property
    def outcome(self) -> str:
        """The status, or "holds weakly"."""
        return "holds weakly" if self.weak else self.status


@dataclass(frozen=True)
class Finding:
    """Numbers that the check of a claim returns; :class:`Claim` makes a verdict of them."""

    measured: float
    expected: float
    tolerance: float
    """The claim holds if ``|measured - expected| <= tolerance``; for ``kind="at least"`` if
    ``measured >= expected - tolerance``; for ``kind="at most"`` if
    ``measured <= expected + tolerance``."""
    standard_error: float | None = None
    """Of the measured value."""
    replicates: int = 1
    """Number of replicates behind it."""
    kind: Literal["equal", "at least", "at most"] = "equal"
    """How measured and expected are compared."""
    detail: str = ""
    """Where the largest deviation was, in words."""

    @property
    def holds(self) -> bool:
        """True if the measured value is within the tolerance."""
        difference = self.measured - self.expected
        if self.kind == "at least":
            return bool(difference >= -self.tolerance)
        if self.kind == "at most":
            return bool(difference <= self.tolerance)
        return bool(abs(difference) <= self.tolerance)


@dataclass(frozen=True)
class NotTestable:
    """Result of a check that these records cannot decide, with the reason."""

    reason: str
    """Missing records, and a setting that would provide them."""


@dataclass(frozen=True)
class Raised:
    """Result of a check that raised an exception, with the exception in one line."""

    reason: str


@dataclass(frozen=True)
class Claim:
    """One quantitative statement of a system."""

    name: str
    """Short identifier, words joined by hyphens."""
    statement: str
    """The claim in one sentence."""
    source: str
    """Place in a paper, or equation of a derivation page, such as "arXiv:2503.14121, Theorem 2"."""
    tolerance_reason: str
    """Reason of the tolerance."""
    check: Callable[[Sequence[Point]], Finding | NotTestable]
    """``check(points) -> Finding | NotTestable``."""
    power: float = 0.1
    """Relative error of the prediction that this claim is meant to notice, from 0 to 0.9."""

    def __post_init__(self) -> None:
        check_power(self.name, self.power)

    def verdict(self, points: Sequence[Point]) -> Verdict:
        """Evaluate the claim on the points of a study."""
        return verdict_of(self, self.check(points))


class Statement(Protocol):
    """Attributes of a claim that a verdict repeats."""

    @property
    def name(self) -> str:
        """Short identifier."""

    @property
    def statement(self) -> str:
        """The claim in one sentence."""

    @property
    def source(self) -> str:
        """Place in a paper, or equation of a derivation page."""

    @property
    def tolerance_reason(self) -> str:
        """Reason of the tolerance."""


def presets_named(advice: str) -> list[tuple[list[str], str]]:
    """Return the presets that an advice names, with alternatives together, and settings to add."""
    found = re.findall(r"\bpreset ([\w-]+(?:(?:, | or )[\w-]+)*)((?: --set [^;()]*\w)?)", advice)
    return [(re.split(", | or ", names), settings) for names, settings in found]


def check_power(name: str, power: float) -> None:
    """Raise unless some relative error of the prediction that is tried makes a claim fail."""
    if not 0 < power <= LARGEST_ERROR:
        raise InvalidParameter(
            f"power of claim {name!r} is {power}; allowed: a number above 0, at most {LARGEST_ERROR}. "
            "Larger errors of a prediction are not tried, and nothing would refute the claim."
        )


def verdict_of(claim: Statement, finding: Finding | NotTestable | Raised) -> Verdict:
    """Make the verdict of a claim from the result of its check."""
    if isinstance(finding, NotTestable | Raised):
        status: Status = "error" if isinstance(finding, Raised) else "not testable"
        return Verdict(
            claim.name, claim.statement, status, reason=finding.reason, source=claim.source
        )
    return Verdict(
        claim.name,
        claim.statement,
        "holds" if finding.holds else "fails",
        measured=finding.measured,
        standard_error=finding.standard_error,
        expected=finding.expected,
        tolerance=finding.tolerance,
        reason=f"{claim.tolerance_reason} {finding.detail}".strip(),
        source=claim.source,
        replicates=finding.replicates,
        kind=finding.kind,
    )


def worst(findings: Sequence[Finding]) -> Finding:
    """Return the finding with the smallest margin before failure."""

    def margin(finding: Finding) -> float:
        difference = finding.measured - finding.expected
        signs = {"equal": abs(difference), "at least": -difference, "at most": difference}
        excess = signs[finding.kind]
        return excess / finding.tolerance if finding.tolerance else excess

    return max(findings, key=margin)
