"""Learned shares: how much of each hidden feature a fitted function contains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidData

WORST_CONDITION = 10.0
"""Largest condition number of the correlations between feature functions."""

LEAST_TOGETHER = 1e-9
"""Part of the target's variance below which its feature functions explain all of it."""


@dataclass(frozen=True)
class Shares:
    r"""Learned shares of the features, and an exact split of the error on the sample.

    .. math:: \frac{|\hat f-f|^2}{|f|^2}=(1-s)^\top A(1-s)+e_r(1-s_r)^2+\nu+g .

    All parts are in units of the variance :math:`|f|^2` of the target without noise.

    Parameters
    ----------
    share : ndarray of shape (p,)
        Learned share :math:`s_k` of each feature: 0 for a constant, 1 for the target itself.
    standard_error : ndarray of shape (p,)
        Standard error of each share from the finite sample of inputs.
    energy : ndarray of shape (p,)
        Variance :math:`A_{kk}` of each feature's part of the target.
    features_error : float
        Error in the features, :math:`(1-s)^\top A(1-s)`.
    together : float
        Share :math:`s_r` of what the features do together (products of features); NaN if there is none.
    together_energy : float
        Variance :math:`e_r` of that part of the target.
    rest : float
        Variance :math:`\nu` of the fitted function outside the parts of the target.
    excess : float
        The rest in units of that of a calibrated learner with the same shares,
        :math:`\sum_kA_{kk}s_k(1-s_k)`; NaN where that is not above 0, as for shares above 1.
    mean_error : float
        Squared difference :math:`g` of the means.
    error : float
        Squared error on the target without noise.
    condition : float
        Condition number of the correlations between feature functions.

    Notes
    -----
    Equations 1 to 4 of docs/derivations/probe.md. Tested in ``tests/probes/test_shares.py``.
    """

    share: np.ndarray
    standard_error: np.ndarray
    energy: np.ndarray
    features_error: float
    together: float
    together_energy: float
    rest: float
    excess: float
    mean_error: float
    error: float
    condition: float


def learned_shares(parts: np.ndarray, target: np.ndarray, fitted: np.ndarray) -> Shares:
    r"""Regress a fitted function and the target on the feature functions, and compare coefficients.

    .. math:: s_k=\beta_k/\alpha_k,\qquad\alpha=G^{-1}\langle\psi,f\rangle,\quad
        \beta=G^{-1}\langle\psi,\hat f\rangle,\quad G=\langle\psi,\psi^\top\rangle .

    Parameters
    ----------
    parts : ndarray of shape (n, p)
        Feature functions :math:`\psi_k` at fresh inputs, of any scale and sign.
    target : ndarray of shape (n,)
        Target without noise.
    fitted : ndarray of shape (n,)
        Predictions of the learner.

    Returns
    -------
    Shares
        The shares do not depend on scale, sign and order of the feature functions.

    Raises
    ------
    InvalidData
        If shapes do not fit, a number is not finite, the feature functions are nearly dependent
        (condition number above 10), or a dependence of the target on one of them cannot be seen.

    Notes
    -----
    Equations 1 to 4 of docs/derivations/probe.md.

    Examples
    --------
    >>> x = np.random.default_rng(0).standard_normal((4000, 2))
    >>> found = learned_shares(x**2, x[:, 0] ** 2 - x[:, 1] ** 2, x[:, 0] ** 2 / 2)
    >>> found.share.round(3) + 0.0
    array([0.5, 0. ])
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
    if energy_left > LEAST_TOGETHER:
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
    """How far a classifier has merged the synonyms of each level of a random hierarchy.

    Parameters
    ----------
    invariance : ndarray of shape (L,)
        Part of the variance of the probabilities that depends only on levels 0 to l, l = 0 ... L - 1:
        1 if all synonyms below are merged, near 0 for a learner that stores its strings.
    label_share : float
        Share of the label in the probabilities, 1 for a perfect classifier.
    brier, label_error, synonym_error : float
        Mean squared error of the probabilities, and its split: the error of their mean given the label,
        and what varies with the choice of synonyms.
    error : float
        Share of wrong predictions.
    """

    invariance: np.ndarray
    label_share: float
    brier: float
    label_error: float
    synonym_error: float
    error: float


def level_shares(
    probabilities: Callable[[np.ndarray], np.ndarray],
    strings: np.ndarray,
    labels: np.ndarray,
    redrawn: Sequence[np.ndarray],
) -> LevelShares:
    r"""Split the variance of probabilities by redrawing the synonyms of one level after another.

    .. math:: \tfrac12E|\hat f(x)-\hat f(\tilde x_l)|^2=\sum_{j>l}V_j,\qquad
        R_l=\frac{\sum_{j\le l}V_j}{\sum_jV_j} .

    Parameters
    ----------
    probabilities : callable
        Strings to probabilities of the classes, shape (n, classes).
    strings : ndarray of shape (n, leaves)
        Fresh strings.
    labels : ndarray of shape (n,)
        Their labels, 0 to classes - 1.
    redrawn : sequence of ndarray
        The strings with everything below levels 0, ..., L - 1 drawn again; the first are strings of the
        same label, the last have only other synonyms of the leaves.

    Returns
    -------
    LevelShares

    Notes
    -----
    Equation 5 of docs/derivations/probe.md. Tested in ``tests/probes/test_shares.py``.
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
