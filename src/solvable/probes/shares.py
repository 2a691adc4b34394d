"""Learned shares: how much of each hidden feature a fitted function contains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidData

WORST_CONDITION = 10.0
"""Largest condition number of the correlations between feature functions."""


@dataclass(frozen=True)
class Shares:
    """Learned shares, and an exact split of the error on the sample (variance of the target: 1)."""

    share: np.ndarray  # s_k of each feature, shape (p,): 0 for a constant, 1 for the target itself
    standard_error: np.ndarray  # of each share, from the finite sample of inputs
    energy: np.ndarray  # variance A_kk of each feature's part of the target
    features_error: float  # (1 - s)^T A (1 - s)
    together: float  # share s_r of what features do together (their products); NaN if there is none
    together_energy: float  # variance of that part of the target
    rest: float  # variance of the fitted function outside the parts of the target
    excess: (
        float  # rest over that of a calibrated learner with these shares; NaN for shares above 1
    )
    mean_error: float  # squared difference of the means
    error: float  # squared error on the target without noise
    condition: float  # condition number of the correlations between feature functions
    outside: np.ndarray  # the fitted function outside the parts of the target, shape (n,)


def learned_shares(parts: np.ndarray, target: np.ndarray, fitted: np.ndarray) -> Shares:
    """Regress a fitted function and the target on the feature functions, and compare coefficients.

    Equations 1 to 4 of docs/derivations/probe.md, for feature functions of shape (n, p) at fresh
    inputs. The shares do not depend on scale, sign and order of the feature functions.
    """
    psi, y, prediction = _checked(parts, target, fitted)
    n = len(y)
    psi = psi - psi.mean(0)
    scale = np.sqrt(np.mean(psi**2, axis=0))
    if not (scale > 0).all():
        raise InvalidData("a feature function is constant; allowed: functions that vary.")
    psi = psi / scale
    gram = psi.T @ psi / n
    condition = float(np.linalg.cond(gram))
    if not condition <= WORST_CONDITION:
        raise InvalidData(
            f"the feature functions are nearly dependent (condition number {condition:.3g}); allowed: "
            f"up to {WORST_CONDITION:g}. Take fewer features, or a larger dimension."
        )
    centred_target, centred_fit = y - y.mean(), prediction - prediction.mean()
    whole = float(np.mean(centred_target**2))
    # alpha = G^-1 <psi, f>, beta = G^-1 <psi, f_hat>   (probe 1)
    alpha, beta = np.linalg.solve(
        gram, psi.T @ np.column_stack([centred_target, centred_fit]) / n
    ).T
    share = beta / alpha
    parts_of_target = psi * alpha
    left = centred_target - parts_of_target.sum(1)
    inverse = np.linalg.solve(gram, psi.T).T
    uncertain = (inverse * left[:, None]).std(0) / np.sqrt(n)
    if not (np.abs(alpha) > 5 * uncertain + 1e-6 * np.sqrt(whole)).all():
        place = int(np.argmin(np.abs(alpha) - 5 * uncertain))
        raise InvalidData(
            f"a dependence of the target on its feature function {place + 1} cannot be seen (coefficient "
            f"{alpha[place]:.2g}, standard error {uncertain[place]:.2g}; needed: 5 of these); leave that "
            "function out."
        )
    energy_left = float(np.mean(left**2)) / whole
    together = float("nan")
    rest = centred_fit - parts_of_target @ share
    if energy_left > 1e-9:  # else the feature functions explain all of the target
        together = float(np.mean(rest * left) / np.mean(left**2))
        rest = rest - together * left
    else:
        energy_left = 0.0
    # Influence of a row on s_k: (psi G^-1)_k (f_hat - beta psi - s_k r) / alpha_k   (probe 2)
    residual = centred_fit - psi @ beta
    influence = inverse * (residual[:, None] - left[:, None] * share) / alpha
    covariance = parts_of_target.T @ parts_of_target / n / whole
    energy = np.diag(covariance).copy()
    calibrated = float(energy @ (share * (1 - share)))
    remainder = float(np.mean(rest**2)) / whole
    return Shares(
        share,
        influence.std(0) / np.sqrt(n),
        energy,
        # (1 - s)^T A (1 - s)   (probe 3)
        float((1 - share) @ covariance @ (1 - share)),
        together,
        energy_left,
        remainder,
        # calibrated, <f_hat, f - f_hat> = 0: the rest is sum_k A_kk s_k (1 - s_k)   (probe 4)
        remainder / calibrated if calibrated > 1e-12 else float("nan"),
        float((prediction.mean() - y.mean()) ** 2) / whole,
        float(np.mean((prediction - y) ** 2)) / whole,
        condition,
        rest,
    )


def _checked(
    parts: np.ndarray, target: np.ndarray, fitted: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    psi, y = np.asarray(parts, dtype=np.float64), np.asarray(target, dtype=np.float64)
    prediction = np.asarray(fitted, dtype=np.float64)
    if prediction.ndim == 2 and prediction.shape[1] == 1:
        prediction = prediction[:, 0]
    if psi.ndim != 2 or y.shape != (len(psi),) or prediction.shape != y.shape:
        raise InvalidData(
            f"shapes are {psi.shape} of the feature functions, {y.shape} of the target and "
            f"{prediction.shape} of the predictions; allowed: (n, p), (n,) and (n,)."
        )
    for name, values in (("feature functions", psi), ("target", y), ("predictions", prediction)):
        if not np.isfinite(values).all():
            raise InvalidData(
                f"the {name} have values that are not finite; allowed: finite numbers."
            )
    return psi, y, prediction


@dataclass(frozen=True)
class LevelShares:
    """How far a classifier has merged the synonyms of each level of a random hierarchy."""

    # part R_l of the variance of the probabilities that depends only on levels 0 to l, shape (L,):
    # 1 if all synonyms below are merged, near 0 for a learner that stores its strings
    invariance: np.ndarray
    label_share: float  # share of the label in the probabilities, 1 for a perfect classifier
    brier: float  # mean squared error of the probabilities: label_error + synonym_error
    label_error: float  # error of their mean given the label
    synonym_error: float  # what varies with the choice of synonyms
    error: float  # share of wrong predictions


def level_shares(
    probabilities: Callable[[np.ndarray], np.ndarray],
    strings: np.ndarray,
    labels: np.ndarray,
    redrawn: Sequence[np.ndarray],
) -> LevelShares:
    """Split the variance of probabilities by redrawing the synonyms of one level after another.

    Equation 5 of docs/derivations/probe.md. `redrawn` are the strings with everything below levels
    0, ..., L - 1 drawn again: first strings of the same label, last other synonyms of the leaves only.
    """
    f = np.asarray(probabilities(strings), dtype=np.float64)
    wanted = np.eye(f.shape[1])[labels]
    centred = f - f.mean(0)
    variance = float(np.mean(np.sum(centred**2, axis=1)))
    others = [np.asarray(probabilities(other), dtype=np.float64) for other in redrawn]
    # sum_{j > l} V_j = E|f(x) - f(x_l)|² / 2, with everything below level l drawn again   (probe 5)
    below = [float(np.mean(np.sum((f - other) ** 2, axis=1))) / 2 for other in others]
    known = np.clip(1 - np.array(below) / variance, 0, 1) if variance > 0 else np.zeros(len(below))
    label = wanted - wanted.mean(0)
    return LevelShares(
        known,
        float(np.mean(np.sum(centred * label, axis=1)) / np.mean(np.sum(label**2, axis=1))),
        float(np.mean(np.sum((f - wanted) ** 2, axis=1))),
        float(np.mean(np.sum((f - wanted) * (others[0] - wanted), axis=1))),
        below[0],
        float(np.mean(f.argmax(1) != labels)),
    )
