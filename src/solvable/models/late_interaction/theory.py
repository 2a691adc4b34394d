"""Variance of MaxSim, the part that a pooled vector explains, and the gain of MaxSim gradients."""

from __future__ import annotations

import numpy as np

from solvable.arrays import check_integer, random_stream
from solvable.errors import InvalidData, InvalidParameter
from solvable.models.late_interaction.maxima import max_covariance, max_moments
from solvable.models.late_interaction.teacher import LateInteractionTeacher

DRAWN_NUMBERS = 1_500_000
"""Number of random numbers in a mean over queries; control variates make it accurate to 0.1 %."""


def score_variance(*, strengths: np.ndarray, query_tokens: int, document_tokens: int) -> float:
    """Mean variance sigma² of the scores of a query's documents."""
    lam = checked_strengths(strengths)
    check_integer("query_tokens", query_tokens, 1)
    energy = float(lam @ lam)
    # sigma² = L_q Var max Tr S² + L_q (L_q - 1) E[|u| |u'| c_L(cos(u, u'))]   (late-interaction 8)
    own = query_tokens * max_moments(document_tokens).variance * energy
    if query_tokens == 1:
        return own
    pairs = query_tokens * (query_tokens - 1)
    return own + pairs * _pair_covariance(lam, document_tokens)


def _pair_covariance(lam: np.ndarray, document_tokens: int) -> float:
    """Mean covariance of the maxima of two query tokens, with S in its own basis."""
    cov = max_covariance(document_tokens)
    draws = int(np.clip(DRAWN_NUMBERS / (2 * lam.size), 2_000, 100_000))
    u, v = random_stream("late interaction", "pairs").standard_normal((2, draws, lam.size)) * lam
    first, other, product = (u * u).sum(axis=1), (v * v).sum(axis=1), (u * v).sum(axis=1)
    norms = np.sqrt(first * other)
    correlation = product / norms
    # The signs of the two tokens are independent, so that odd powers of the correlation have mean 0.
    values = norms * (cov.covariance(correlation) + cov.covariance(-correlation)) / 2
    energy = float(lam @ lam)
    # The variables have mean 0. Subtracting their best linear combination lowers the variance tenfold.
    known = [first + other - 2 * energy, norms**2 - energy**2, product**2 - float(lam**2 @ lam**2)]
    columns = np.stack([np.ones(draws), *known], axis=1)
    return float(np.linalg.lstsq(columns, values, rcond=None)[0][0])


def pooled_fraction(*, strengths: np.ndarray, query_tokens: int, document_tokens: int) -> float:
    r"""Compute the part of the score variance that mean-pooled documents explain.

    .. math:: \rho^2=\frac{L_q\,\mathrm{Tr}S^2/L_d}{\sigma^2},\qquad
        \sigma^2=L_q\mathrm{Var}\max{}_{L_d}\mathrm{Tr}S^2
        +L_q(L_q-1)\,E\big[|u||u'|\,c_{L_d}(\cos(u,u'))\big],

    with :math:`u=Sq`, :math:`u'=Sq'` for Gaussian q, q', and the covariance :math:`c_L(\rho)` of the
    maxima of two rows of L normal numbers. No dense model exceeds it. derivations/late-interaction (8),
    (9).

    Parameters
    ----------
    strengths : array of shape (r,)
        Eigenvalues of the kernel S, at least 0, not all 0.
    query_tokens, document_tokens : int
        Numbers :math:`L_q\ge1` and :math:`L_d` of tokens, the latter from 2 to 1024.

    Returns
    -------
    float
        Fraction :math:`\rho^2`; :math:`1/(L_d\mathrm{Var}\max_{L_d})` for many strengths.

    Examples
    --------
    >>> fraction = pooled_fraction(strengths=np.ones(30), query_tokens=4, document_tokens=8)
    >>> round(fraction, 3)
    0.323
    """
    lam = checked_strengths(strengths)
    variance = score_variance(
        strengths=lam, query_tokens=query_tokens, document_tokens=document_tokens
    )
    # rho² = L_q Tr S² / (L_d sigma²)   (late-interaction 9)
    return query_tokens * float(lam @ lam) / (document_tokens * variance)


def gradient_gain(teacher: LateInteractionTeacher, factor: np.ndarray) -> float:
    r"""Compute the signal-to-noise ratio of a MaxSim gradient, relative to that of pooling.

    The gradient is the mean of :math:`y\sum_iq_id_{j(i)}^\top`, where the student with kernel
    :math:`W^\top W` chooses the tokens :math:`j(i)`, and y are scores. Its signal is the component
    along :math:`S^\star`, its noise the sum of squares of its entries.
    The signal is exact, the ratio of noises is that of many dimensions: at d = 30 simulated ratios
    agree within 0.05. Source: derivations/late-interaction (12), (13).

    Parameters
    ----------
    teacher : LateInteractionTeacher
        Teacher with independent tokens.
    factor : array of shape (k, d)
        Factor W of the student's kernel.

    Returns
    -------
    float
        Ratio of squared signal-to-noise ratios; its value at :math:`W^\top W=S^\star` is
        :math:`1/(\rho^4L_d)`.

    Examples
    --------
    >>> teacher = LateInteractionTeacher(dimension=30, rank=6, decay=0.5)
    >>> round(gradient_gain(teacher, teacher.factor), 1)
    1.7
    """
    check_gaussian_tokens(teacher)
    W = np.asarray(factor, dtype=np.float64)
    if W.ndim != 2 or W.shape[1] != teacher.dimension or not np.isfinite(W).all():
        raise InvalidData(
            f"the factor has shape {W.shape}; allowed: (k, {teacher.dimension}), finite numbers."
        )
    rows = int(np.clip(DRAWN_NUMBERS / (teacher.query_tokens * teacher.dimension), 200, 10_000))
    rng = random_stream("late interaction", "gain")
    queries = rng.standard_normal((rows, teacher.query_tokens, teacher.dimension))
    true, student = queries @ teacher.kernel, queries @ (W.T @ W)
    norms, lengths = np.linalg.norm(true, axis=2), np.linalg.norm(student, axis=2)
    true, student = true / norms[..., None], student / lengths[..., None]
    between = true @ true.transpose(0, 2, 1)
    mixed = true @ student.transpose(0, 2, 1)
    matched = np.diagonal(mixed, axis1=1, axis2=2)[:, None, :]
    cov = max_covariance(teacher.document_tokens)
    # Cov(max_j z_j, w_j') = (a - b c) p_L(c) + b c_L(c), where j' is the place of the maximum of w', and
    # z, w, w' have correlations a of z and w, b of w and w', c of z and w'   (late-interaction 12)
    values = (between - matched * mixed) * cov.same_column(mixed) + matched * cov.covariance(mixed)
    signal = float((norms[:, :, None] * norms[:, None, :] * values).sum(axis=(1, 2)).mean())
    pooled = teacher.query_tokens * float(teacher.strengths @ teacher.strengths)
    # SNR² / SNR²_pool = L_d (signal / L_q Tr S²)²   (late-interaction 13)
    return teacher.document_tokens * (signal / pooled) ** 2


def checked_strengths(strengths: np.ndarray) -> np.ndarray:
    """Strengths as a vector of finite numbers of at least 0, not all 0."""
    lam = np.asarray(strengths, dtype=np.float64)
    if lam.ndim != 1 or not np.isfinite(lam).all() or not (lam >= 0).all() or not lam.any():
        raise InvalidData(
            f"strengths have shape {lam.shape}; allowed: (r,), finite, at least 0, not all 0."
        )
    return lam


def check_gaussian_tokens(teacher: LateInteractionTeacher) -> None:
    """Refuse a teacher whose tokens are not independent Gaussian vectors."""
    if teacher.normalise or teacher.copies > 0:
        raise InvalidParameter(
            f"normalise is {teacher.normalise} and copies is {teacher.copies:g}; allowed for "
            "predictions: normalise=False, copies=0 (independent Gaussian tokens)."
        )
