"""Thresholds of a model in the sample ratio: weak, algorithmic, information-theoretic and perfect."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from solvable.inference.curve import Curve, curve_of
from solvable.inference.multi_index import MultiIndexOutput
from solvable.inference.outputs import Output
from solvable.inference.priors import Prior
from solvable.inference.several_directions import evolution_of
from solvable.inference.summary import Summarised
from solvable.spectra.roots import bracketed_root


@dataclass(frozen=True, repr=False)
class Thresholds(Summarised):
    """Sample ratios at which the errors of a model change; None where there is no threshold.

    Parameters
    ----------
    weak_recovery : float or None
        Ratio above which message passing beats the prior mean; 0 if any number of labels helps.
    algorithmic : float or None
        Ratio above which message passing reaches the best fixed point: its last jump, or perfect
        recovery.
    information : float or None
        Ratio above which the Bayes-optimal error is that of the best fixed point.
    perfect_recovery : float or None
        Ratio above which the error of message passing is 0.
    reasons : dict
        One sentence for each threshold that is None or 0.
    specialisation : float or None
        Ratio above which directions are found apart that labels show together at first, such as the units
        of a committee; only for several directions.

    Examples
    --------
    >>> from solvable.inference import Gaussian, Output
    >>> found = thresholds(Gaussian(), Output("sign"))
    >>> found.algorithmic, found.reasons["algorithmic"]
    (None, 'the error falls without a jump: one fixed point at each ratio')
    """

    weak_recovery: float | None
    algorithmic: float | None
    information: float | None
    perfect_recovery: float | None
    reasons: dict[str, str] = field(default_factory=dict)
    specialisation: float | None = None


SMOOTH = "the error falls without a jump: one fixed point at each ratio"


def thresholds(prior: Prior, output: Output | MultiIndexOutput) -> Thresholds:
    r"""Thresholds of message passing and of the best estimate, from the curve :math:`\alpha(A)`.

    Parameters
    ----------
    prior : Prior
        Law of the entries of the signal.
    output : Output or MultiIndexOutput
        Law of a label given its index or indices.

    Returns
    -------
    Thresholds
        Sample ratios, with reasons where there is none.

    Notes
    -----
    Weak recovery: the limit of :math:`\alpha(A)` at A = 0. Jumps of message passing: maxima of
    :math:`\alpha(A)` above all earlier values. Information: equal potentials of both branches, or, at
    perfect recovery from labels with a density, D / c with the weight D of the continuous part of the
    prior and the share c of labels that show the index. Backed by
    ``tests/inference/test_boundaries.py``.

    Examples
    --------
    >>> from solvable.inference import Output, Rademacher
    >>> found = thresholds(Rademacher(0.5), Output("sign"))
    >>> round(found.algorithmic, 4), round(found.information, 4)
    (1.4926, 1.2447)
    """
    if isinstance(output, MultiIndexOutput):
        return _of_directions(prior, output)
    curve = curve_of(prior, output)
    reasons: dict[str, str] = {}
    weak = _weak(curve, reasons)
    perfect, algorithmic = _perfect(curve, reasons), _algorithmic(curve, reasons)
    information = _information(curve, algorithmic, reasons)
    return Thresholds(weak, algorithmic, information, perfect, reasons)


JUMPS = "not computed for several directions: compare state_evolution from both starts"
FIRST_ORDER = "labels have first-order information: any number of them helps"
MEAN = "the mean of the prior is not 0, so the overlap is always positive"
HIDDEN = (
    "labels have no information of first or second order: message passing finds nothing at any finite "
    "ratio"
)


def _of_directions(prior: Prior, output: MultiIndexOutput) -> Thresholds:
    evolution = evolution_of(prior, output)
    reasons = {"algorithmic": JUMPS}
    reasons |= dict.fromkeys(("information", "perfect_recovery"), "as algorithmic")
    weak: float | None = evolution.weak_recovery()
    if weak == 0:
        reasons["weak_recovery"] = MEAN if prior.mean else FIRST_ORDER
    elif weak == np.inf:
        weak, reasons["weak_recovery"] = None, HIDDEN
    special = evolution.specialisation()
    if special is None:
        reasons["specialisation"] = (
            "no exchange or sign of the directions gives the same labels, all of them do so before weak "
            "recovery, or overlaps are beyond the grid"
        )
    return Thresholds(weak, None, None, None, reasons, special)


def _weak(curve: Curve, reasons: dict[str, str]) -> float | None:
    if curve.prior.mean**2 > 1e-14 * curve.rho:
        reasons["weak_recovery"] = MEAN
        return 0.0
    if curve.table.order == 0:
        reasons["weak_recovery"] = FIRST_ORDER
        return 0.0
    if np.isinf(curve.start_ratio):
        reasons["weak_recovery"] = HIDDEN
        return None
    return float(curve.start_ratio)


def _perfect(curve: Curve, reasons: dict[str, str]) -> float | None:
    """Smallest ratio at which the uninformed branch ends at error 0."""
    if np.isinf(curve.last_ratio):
        reasons["perfect_recovery"] = (
            "labels have noise: the error is positive at every ratio"
            if curve.noisy
            else "labels show only a piece of the index: the error falls like a power of the ratio"
        )
        return None
    if np.isinf(curve.start_ratio):
        reasons["perfect_recovery"] = "message passing finds nothing at any finite ratio"
        return None
    last = curve.records[-1][1] if curve.records else 0.0
    return float(max(last, curve.last_ratio))


def _algorithmic(curve: Curve, reasons: dict[str, str]) -> float | None:
    """Last jump of the uninformed branch; the ratio of perfect recovery if this needs no jump."""
    if np.isinf(curve.start_ratio):
        reasons["algorithmic"] = "message passing finds nothing at any finite ratio"
        return None
    if curve.records:
        return curve.records[-1][1]
    if np.isfinite(curve.last_ratio) and curve.last_ratio > 0:
        return float(curve.last_ratio)
    reasons["algorithmic"] = SMOOTH
    return None


def _information(curve: Curve, algorithmic: float | None, reasons: dict[str, str]) -> float | None:
    limit = curve.last_ratio
    if np.isfinite(limit):
        if limit > 0:
            return float(limit)
        if curve.table.shown:
            reasons["information"] = (
                "one label with a density and no noise determines a discrete signal in principle"
            )
            return 0.0
    if not curve.records and not np.isinf(curve.start_ratio):
        if curve.start_ratio:
            return float(curve.start_ratio)
        reasons["information"] = SMOOTH
        return None
    # The better branch is born at the smallest ratio from the last minimum on.
    places, ratios = curve.turns
    last = curve.records[-1][0] if curve.records else -np.inf
    after = ratios[places > last]
    born = float(min([*after, np.exp(curve.values[-1])])) if limit else 1e-3
    most = algorithmic if algorithmic is not None else 1e3 * max(born, 1.0)
    # Equal potentials (inference 7). At the ends of the bracket both branches are one, so it keeps a
    # distance of 1e-3.
    low, high = born * (1 + 1e-3), most * (1 - 1e-3)
    ends = (curve.gap(low), curve.gap(high)) if low < high else (-1.0, -1.0)
    if ends[0] <= 0:
        return born
    if ends[1] >= 0:
        if algorithmic is None:
            reasons["information"] = "the informed fixed point is never the better one"
            return None
        return most
    return bracketed_root(curve.gap, low, high, ends=ends, relative=1e-9)
