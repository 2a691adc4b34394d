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
"""Characters of a user's input that a message repeats at most."""


class SolvableError(Exception):
    """Base class of every error that solvable raises on purpose."""


class InvalidParameter(SolvableError, ValueError):
    """A parameter has a value outside its documented range."""


class DegenerateReadout(InvalidParameter):
    """The readout has information exponent above one: no linear trace of the index is left.

    The spectral estimator weights samples by the label. If :math:`E[g'(z)] = 0` the population
    matrix carries no spike at leading order, so no sample size recovers the features.
    """


class UnknownSystem(InvalidParameter):
    """No installed package provides a system of this name."""


class InvalidSystem(InvalidParameter):
    """A system breaks the contract that studies, reports and claims rest on."""


class InvalidData(SolvableError, ValueError):
    """The arrays given cannot be learned from (NaN, infinity, constant labels, wrong shape)."""


class MemoryLimitExceeded(SolvableError, MemoryError):
    """The chosen route needs more memory than the machine has; the message states how much."""


class NotConverged(SolvableError, RuntimeError):
    """A solver stopped before it reached its tolerance.

    Parameters
    ----------
    message : str
        What was solved, how far it came, and what to change.
    diagnostics : mapping, optional
        What the solver reached: residual, iterations, bracket; kept as ``.diagnostics``.
    """

    def __init__(self, message: str, diagnostics: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.diagnostics: dict[str, Any] = dict(diagnostics or {})


class StudyError(SolvableError):
    """A study on disk cannot be used as asked."""


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

    ``rejected_`` of the learner says why for each direction. More samples, a bounded label map or
    another degree may help; ``selection="forced"`` returns directions all the same.
    """


def shortened(text: str, longest: int = LONGEST_QUOTE) -> str:
    """Return the text, its middle cut out where it is longer than a message may repeat.

    Parameters
    ----------
    text : str
        Any text.
    longest : int
        Most characters of what is returned, 200 by default.

    Returns
    -------
    str
        The text, or its beginning and end with the number of its characters between them.

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
    r"""Return a value as a message repeats it: in quotes, control characters escaped, cut.

    Parameters
    ----------
    value : object
        What was seen.

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
    """Say that a value is not among the allowed ones, with the nearest match.

    Parameters
    ----------
    kind : str
        What the value is, for example ``"label_map"``.
    value : object
        What was seen.
    allowed : iterable of str
        Every value that is allowed.

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
