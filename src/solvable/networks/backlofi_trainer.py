"""Loop over passes of backward coupling: keep the best pass, stop when passes diverge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from solvable.fitting.ridge import ReadoutMoments, Regularisation, RidgeFit, kernel_ridge
from solvable.networks.backlofi_network import CoupledLayer, propagate, states_of
from solvable.networks.backlofi_signals import ForwardGain
from solvable.networks.backlofi_steps import PassSettings, coupled_pass

ERROR_LIMIT = 1.25  # passes end if the held-back squared error exceeds the best by this factor

SCALE_LIMIT = 4.0
"""Passes end if the mean squared norm of held-back features changes by more than this factor."""


@dataclass(frozen=True)
class PassRecord:
    """Errors and feature scale after one pass."""

    number: int  # number of the pass; 0 for the forward fit
    held_back_loss: (
        float  # mean squared held-back error in units of the fitted labels; NaN without rows
    )
    held_back_error: float  # fraction of misclassified held-back rows; NaN for real labels
    training_loss: float  # error on the fitted rows; not an estimate of the test error
    feature_scale: float  # mean squared norm of held-back features relative to the forward fit
    penalty: float  # ridge penalty of the readout


@dataclass(frozen=True)
class Outcome:
    """Network of the best pass, and the records of all passes, the forward fit first."""

    layers: tuple[CoupledLayer, ...]
    readout: RidgeFit
    history: tuple[PassRecord, ...]
    best_pass: int
    stopped_reason: str


@dataclass(frozen=True)
class Rows:
    """Scaled rows with their labels for filters and readout."""

    inputs: np.ndarray  # scaled inputs, shape (n, d)
    labels: np.ndarray  # labels of the filters, shape (n, S)
    targets: np.ndarray  # targets of the readout, shape (n, S)


def ridge(features: np.ndarray, targets: np.ndarray, regularisation: Regularisation) -> RidgeFit:
    """Fit ridge with primal weights, using the smaller of the two Gram matrices."""
    if len(features) > features.shape[1]:
        moments = ReadoutMoments(features.shape[1], targets.shape[1]).add(features, targets)
        return moments.solve(regularisation=regularisation)
    dual = kernel_ridge(features @ features.T, targets, regularisation=regularisation)
    return RidgeFit(
        features.T @ dual.coefficients,
        dual.intercept,
        dual.penalty,
        dual.criterion,
        dual.degrees_of_freedom,
    )


def train(
    layers: Sequence[CoupledLayer],
    fitted: Rows,
    held_back: Rows,
    settings: PassSettings,
    n_passes: int,
    regularisation: Regularisation,
    misclassified: Callable[[np.ndarray, np.ndarray], float],
) -> Outcome:
    """Make passes until they diverge, and keep the one with the lowest held-back squared error."""
    current = tuple(layers)
    readout = ridge(propagate(current, fitted.inputs), fitted.targets, regularisation)
    base = _power(propagate(current, held_back.inputs))
    first = _record(0, current, readout, fitted, held_back, base, misclassified)
    history, best = [first], (current, readout, first)
    reason = _nothing_to_do(held_back, settings, n_passes)
    forward = ForwardGain.of(current, states_of(current, fitted.inputs)) if not reason else None
    for number in range(1, n_passes + 1):
        if forward is None:
            break
        # Overflow shows in the held-back rows, which are checked below.
        with np.errstate(over="ignore", invalid="ignore"):
            current = coupled_pass(
                current,
                fitted.inputs,
                fitted.labels,
                readout.coefficients,
                forward,
                settings,
                number,
            )
            features = propagate(current, fitted.inputs)
        if not np.isfinite(features).all():
            reason = f"features of pass {number} are not finite"
            break
        readout = ridge(features, fitted.targets, regularisation)
        record = _record(number, current, readout, fitted, held_back, base, misclassified)
        history.append(record)
        reason = _divergence(record, best[2])
        if reason:
            break
        if record.held_back_loss < best[2].held_back_loss:
            best = (current, readout, record)
    reason = reason or f"all {n_passes} passes made"
    return Outcome(best[0], best[1], tuple(history), best[2].number, reason)


def _nothing_to_do(held_back: Rows, settings: PassSettings, n_passes: int) -> str:
    if not len(held_back.inputs):
        return "no row could be held back to monitor the passes"
    if not n_passes or not any(settings.n_replaced):
        return "no column is to be replaced"
    return ""


def _divergence(record: PassRecord, best: PassRecord) -> str:
    """Reason to end the passes, or an empty string."""
    if not np.isfinite(record.held_back_loss):
        return f"predictions of pass {record.number} are not finite"
    if record.held_back_loss > ERROR_LIMIT * best.held_back_loss:
        return (
            f"held-back squared error of pass {record.number} is {record.held_back_loss:.3g}, more "
            f"than {ERROR_LIMIT:g} times the {best.held_back_loss:.3g} of pass {best.number}"
        )
    if not 1 / SCALE_LIMIT <= record.feature_scale <= SCALE_LIMIT:
        return (
            f"features of pass {record.number} have {record.feature_scale:.3g} times the power of "
            f"the forward fit, outside 1/{SCALE_LIMIT:g} to {SCALE_LIMIT:g}"
        )
    return ""


def _record(
    number: int,
    layers: Sequence[CoupledLayer],
    readout: RidgeFit,
    fitted: Rows,
    held_back: Rows,
    base: float,
    misclassified: Callable[[np.ndarray, np.ndarray], float],
) -> PassRecord:
    features = propagate(layers, held_back.inputs)
    outputs = features @ readout.coefficients + readout.intercept
    training = propagate(layers, fitted.inputs) @ readout.coefficients + readout.intercept
    empty = not len(outputs)
    power = _power(features)
    return PassRecord(
        number=number,
        held_back_loss=np.nan if empty else _loss(outputs, held_back.targets),
        held_back_error=np.nan if empty else misclassified(outputs, held_back.targets),
        training_loss=_loss(training, fitted.targets),
        feature_scale=power / base if base else 1.0,
        penalty=readout.penalty,
    )


def _loss(outputs: np.ndarray, targets: np.ndarray) -> float:
    return float(np.mean(np.sum((outputs - targets) ** 2, axis=1)))


def _power(features: np.ndarray) -> float:
    return float(np.mean(np.sum(features**2, axis=1))) if len(features) else 0.0
