"""The errors that solvable raises on purpose.

The tree::

    SolvableError
    ├── InvalidParameter (ValueError)     a value outside its documented range
    │   ├── DegenerateReadout             a readout that hides the features from the learner
    │   ├── UnknownSystem                 a system name that no entry point provides
    │   └── InvalidSystem                 a system that breaks its contract
    ├── InvalidData (ValueError)          an array that cannot be learned from
    ├── MemoryLimitExceeded (MemoryError) a route that does not fit into memory
    ├── NotConverged (RuntimeError)       a solver stopped before its tolerance
    └── StudyError                        a study on disk
        ├── StudyConflict                 the directory holds another study
        ├── StudyBusy                     another process writes to the directory
        ├── StudyTooNew                   the file was written by a newer version
        └── StorageFailed                 the store could not be written or read

and one warning, NoFeatureFound (UserWarning): a learner that found nothing predicts a constant.

Every message says what is wrong, what was seen, what is allowed and what to do. It repeats at most
:data:`LONGEST_QUOTE` characters of what was given (:func:`quoted`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

LONGEST_QUOTE = 200
"""Largest number of characters of a user's input that a message repeats."""


class SolvableError(Exception):
    """Base class of every error that solvable raises on purpose."""


class InvalidParameter(SolvableError, ValueError):
    """A parameter has a value outside its documented range."""


class DegenerateReadout(InvalidParameter):
    """The readout has information exponent above one, so labels carry no linear signal.

    The spectral estimator weights samples by the label. If :math:`E[g'(z)] = 0`, the population
    matrix has no spike at leading order, so no sample size recovers the features.
    """


class UnknownSystem(InvalidParameter):
    """No installed package provides a system of this name."""


class InvalidSystem(InvalidParameter):
    """A system breaks the contract that studies, reports and claims rely on."""


class InvalidData(SolvableError, ValueError):
    """Arrays that a learner cannot use (NaN, infinity, constant labels, wrong shape)."""


class MemoryLimitExceeded(SolvableError, MemoryError):
    """The chosen route needs more memory than the machine has; the message states how much."""


class NotConverged(SolvableError, RuntimeError):
    """A solver stopped before it reached its tolerance.

    Parameters
    ----------
    message : str
        The problem, the residual that was reached, and the remedy.
    diagnostics : mapping, optional
        State of the solver: residual, iterations, bracket; kept as ``.diagnostics``.
    """

    def __init__(self, message: str, diagnostics: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.diagnostics: dict[str, Any] = dict(diagnostics or {})


class StudyError(SolvableError):
    """A study on disk cannot be used in the requested way."""


class StudyConflict(StudyError):
    """The run directory already holds another study."""


class StudyBusy(StudyError):
    """Another process is writing to the run directory."""


class StudyTooNew(StudyError):
    """The study was written by a newer version of solvable."""


class StorageFailed(StudyError):
    """The store of a study could not be written or read (full disk, damaged file, permissions)."""


class NoFeatureFound(UserWarning):
    """No eigenvalue stands out of the noise, so that the learner predicts the mean of the labels.

    ``rejected_`` of the learner gives a reason for each direction. More samples, a bounded label map
    or another degree may help; ``selection="forced"`` returns directions nevertheless.
    """


def shortened(text: str, longest: int = LONGEST_QUOTE) -> str:
    """Return the text, without its middle if it is too long for a message.

    Parameters
    ----------
    text : str
        Any text.
    longest : int
        Largest number of characters of the result.

    Returns
    -------
    str
        The text, or its beginning and end with the number of characters between them.

    Examples
    --------
    >>> shortened("a" * 500, 40)
    'aaaa ... (500 characters) ... aaaaaaaaaa'
    """
    if len(text) <= longest:
        return text
    mark = f" ... ({len(text)} characters) ... "
    tail = longest // 4
    return f"{text[: longest - tail - len(mark)]}{mark}{text[-tail:]}"


def quoted(value: object) -> str:
    r"""Return a value in quotes for a message, with control characters escaped, cut if long.

    Parameters
    ----------
    value : object
        The value that was given.

    Returns
    -------
    str
        Its representation, at most 200 characters.

    Examples
    --------
    >>> quoted("one line\n")
    "'one line\\n'"
    """
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python writes
        text = f"{type(value).__name__} of too many digits"
    return shortened(text)


def unknown_choice(kind: str, value: object, allowed: Iterable[str]) -> str:
    """Return a message that a value is not allowed, with the nearest match.

    Parameters
    ----------
    kind : str
        Name of the parameter, for example ``"label_map"``.
    value : object
        The value that was given.
    allowed : iterable of str
        All allowed values.

    Returns
    -------
    str
        One sentence for an error message.

    Examples
    --------
    >>> unknown_choice("label_map", "tan", ["identity", "tanh", "clip"])
    "label_map is 'tan'; allowed: identity, tanh, clip. Did you mean 'tanh'?"
    """
    names = list(allowed)
    near = get_close_matches(str(value)[:LONGEST_QUOTE], names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"{kind} is {quoted(value)}; allowed: {', '.join(names)}.{hint}"
