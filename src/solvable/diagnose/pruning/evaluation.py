"""Loss of a file of weights, measured by a function of the user."""

from __future__ import annotations

import importlib.util
import math
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from solvable.diagnose.pruning.results import Effect
from solvable.errors import InvalidData, InvalidParameter, quoted
from solvable.paths import check_path, error_line

CLEAR = 2.0  # standard errors above which the sign of a change is clear, at about 95 %
FORM = "FILE.py:FUNCTION, where FUNCTION takes the path of weights and returns the loss"


@dataclass(frozen=True, eq=False)
class Measured:
    """Loss of one file of weights, or the reason why there is none."""

    loss: float | None
    fault: str
    seconds: float
    rows: np.ndarray | None = None  # (n,): loss of each held-out row, if the function returned them


def load_function(text: str) -> Callable[[str], Any]:
    """Execute the user's file, and return the function that it names."""
    name, colon, function = text.rpartition(":")
    if not colon or not name or not function.isidentifier():
        raise InvalidParameter(f"--evaluate is {quoted(text)}; allowed: {FORM}.")
    path = check_path(name, "--evaluate")
    if not path.is_file():
        raise InvalidParameter(f"--evaluate names {path}, which is not a file; allowed: {FORM}.")
    spec = importlib.util.spec_from_file_location(f"evaluate_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InvalidParameter(f"--evaluate names {path}, not a Python file; allowed: {FORM}.")
    module = importlib.util.module_from_spec(spec)
    # As for a script, files next to it can be imported, also later, when the function is called.
    sys.path.insert(0, str(path.resolve().parent))
    try:
        with redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise InvalidParameter(
            f"--evaluate: {path} cannot be executed ({error_line(error)}). Run it with Python first."
        ) from error
    found = getattr(module, function, None)
    if not callable(found):
        raise InvalidParameter(
            f"--evaluate: {path} has no function {function!r}; allowed: {FORM}. Define it there."
        )
    return found


def measured(function: Callable[[str], Any], path: Path) -> Measured:
    """Call the function; an exception, NaN or anything but losses becomes a reason of one line."""
    started = time.monotonic()
    loss, fault, rows = None, "", None
    try:
        # What the function prints must not mix with the numbers on standard output.
        with redirect_stdout(sys.stderr):
            value = function(str(path))
            rows = _rows(value)
            loss, fault = _number(value if rows is None else float(rows.mean()))
    except (Exception, SystemExit) as error:
        fault = f"the function raised {error_line(error)}"
    return Measured(loss, fault, time.monotonic() - started, None if loss is None else rows)


def _rows(value: Any) -> np.ndarray | None:
    """Return the losses of at least two rows; None if the value is anything else."""
    if isinstance(value, str | bytes) or not hasattr(value, "__len__"):
        return None
    if hasattr(value, "detach"):
        value = value.detach().cpu()  # a tensor of torch
    try:
        rows = np.asarray(value)
    except (TypeError, ValueError):
        return None
    if rows.ndim != 1 or len(rows) < 2 or rows.dtype.kind not in "iuf":
        return None
    return rows.astype(np.float64)


def _number(value: Any) -> tuple[float | None, str]:
    seen = (
        f"the function returned {quoted(value)}; allowed: one number, lower is better, or one such "
        "number for each held-out row"
    )
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()  # scalars of NumPy and torch
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None, seen
    loss = float(value)
    if math.isnan(loss):
        return None, "the loss is NaN"
    return (loss, "") if math.isfinite(loss) else (None, f"the loss is {loss}")


def effect_of(
    before: Measured, after: Measured, tolerance: float
) -> tuple[float, float | None, Effect]:
    """Return the change of the loss, its standard error over rows if known, and its sign."""
    assert before.loss is not None
    assert after.loss is not None
    change, error = after.loss - before.loss, None
    if before.rows is not None and after.rows is not None and len(before.rows) == len(after.rows):
        # The rows are the same, so that the error of the mean is that of the paired differences.
        error = float((after.rows - before.rows).std(ddof=1) / len(before.rows) ** 0.5)
    if abs(change) <= tolerance:
        return change, error, "no change"
    if error is not None and abs(change) <= CLEAR * error:
        return change, error, "not clear"
    return change, error, "better" if change < 0 else "worse"


def of_original(function: Callable[[str], Any], path: Path) -> tuple[Measured, float]:
    """Measure the original weights twice; return the loss, and the difference that counts as none."""
    first = measured(function, path)
    if first.loss is None:
        raise InvalidData(
            f"{path}: {first.fault}. The loss of the original weights is needed for a comparison; check "
            "the function on them first."
        )
    again = measured(function, path).loss
    # A function that draws batches at random gives another loss each time. Three times the difference
    # of two calls is exceeded by chance in one of eight comparisons if the losses are normal.
    scatter = 0.0 if again is None else 3 * abs(again - first.loss)
    return first, max(1e-4 * abs(first.loss), scatter)
