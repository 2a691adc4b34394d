r"""Sample ratios at which minimisers exist, are unique, or recover a sparse signal."""

from __future__ import annotations

import numpy as np

from solvable.errors import InvalidParameter
from solvable.inference.outputs import Output
from solvable.inference.priors import Prior
from solvable.inference.sample_means import breakpoints, panels


def separability_threshold(output: Output, prior: Prior | None = None) -> float:
    r"""Compute the sample ratio above which labels -1 and 1 are not linearly separable.

    Above it the logistic regression without penalty has a minimiser; below it some weights give every
    sample the sign of its label, and the minimiser is at infinity.

    .. math:: \frac1{\alpha_\star}=\min_tE\big[(1+c^2)\Phi(c)+c\,\phi(c)\big],\qquad c=t\,y\,u,

    with the index in units of its deviation, u, and the labels y of the output.

    Parameters
    ----------
    output : Output
        Output with labels -1 and 1.
    prior : Prior, optional
        Law of the entries of the signal, of which only the second moment matters; 1 by default.

    Returns
    -------
    float
        Samples per dimension; infinity if labels are always separable.

    Raises
    ------
    InvalidParameter
        If labels are not -1 and 1.

    Notes
    -----
    Cover (1965) for labels without signal, Candès and Sur (2020) for logistic labels, here
    (empirical-risk 9). Inputs are Gaussian and the model has no intercept. Backed by
    ``tests/inference/test_existence.py``.

    Examples
    --------
    >>> from solvable.inference import Output
    >>> round(separability_threshold(Output("sign", flips=0.1)), 4)
    2.9923
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import ndtr

    deviation = float(np.sqrt(1.0 if prior is None else prior.second_moment))
    z, chance = panels(deviation, breakpoints(output), deviation / 4)
    y, shares = output.labels(z)
    if not (np.abs(y[shares > 0]) == 1).all():
        raise InvalidParameter(
            "the output draws labels other than -1 and 1; use an output such as sign or logistic."
        )
    weights, u = chance[:, None] * shares, y * z[:, None] / deviation

    def cost(t: float) -> float:
        c = t * u
        squares = (1 + c**2) * ndtr(c) + c * np.exp(-(c**2) / 2) / np.sqrt(2 * np.pi)
        return float(np.sum(weights * squares))

    # the cost is convex in t; labels with a margin have their minimum at t = -infinity
    found = minimize_scalar(cost, bracket=(-1.0, 0.0), tol=1e-10)
    return float(1 / found.fun) if found.fun > 1e-9 else np.inf


def l1_recovery_threshold(density: float) -> float:
    r"""Compute the sample ratio from which the smallest l1 norm recovers a sparse signal.

    .. math:: \alpha(\rho)=\min_t\ \rho(1+t^2)+2(1-\rho)\big[(1+t^2)\Phi(-t)-t\,\phi(t)\big]

    Parameters
    ----------
    density : float, from 0 to 1
        Fraction of the entries that are not 0.

    Returns
    -------
    float
        Samples per dimension, for Gaussian inputs and labels without noise.

    Raises
    ------
    InvalidParameter
        If the density is not from 0 to 1.

    Notes
    -----
    The weak threshold of Donoho and Tanner (2009), in the form of Donoho, Maleki and Montanari (2009),
    here (empirical-risk 10). Backed by ``tests/inference/test_existence.py``.

    Examples
    --------
    >>> round(l1_recovery_threshold(0.1), 5)
    0.32879
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import ndtr

    if not 0 <= density <= 1:
        raise InvalidParameter(f"density is {density}; allowed: 0 to 1.")

    def cost(t: float) -> float:
        tail = (1 + t**2) * ndtr(-t) - t * np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
        return float(density * (1 + t**2) + 2 * (1 - density) * tail)

    found = minimize_scalar(cost, bounds=(0.0, 40.0), method="bounded", options={"xatol": 1e-10})
    return max(float(found.fun), 0.0)
