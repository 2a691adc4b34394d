r"""Finite-size moments behind every prediction, with their Monte-Carlo errors, from one routine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_positive, random_stream
from solvable.errors import InvalidData, InvalidParameter, unknown_choice
from solvable.models.sequential.sample_kernel import SampleKernel, corrected_kernel, plain_kernel
from solvable.operators import Correction, LabelMap, apply_label_map
from solvable.spectra.spikes import WeightedSample, compress_sample

BATCH_ROWS = 4_096
"""Rows of inputs drawn at a time."""

BATCHES = 32
"""Batches of draws whose spread gives the standard errors."""

Readout = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class LatentSample:
    r"""Draws of everything that the moments are made of.

    Attributes
    ----------
    labels : ndarray of shape (m,)
        :math:`y`.
    latent : ndarray of shape (m, p)
        :math:`h_i=\langle A_i,F\rangle`, :math:`\|A_i\|=1`.
    squared_norm : ndarray of shape (m,)
        :math:`\|F\|^2`, of mean D.
    corrected : SampleKernel, optional
        Exact numbers of the Wick-corrected kernel; degree 2 only.
    """

    labels: np.ndarray
    latent: np.ndarray
    squared_norm: np.ndarray
    corrected: SampleKernel | None = None


LatentDraw = Callable[
    [int, np.random.Generator], LatentSample | tuple[np.ndarray, np.ndarray, np.ndarray]
]
"""Draws n samples: ``draw(n, rng) -> (y, h, squared_norm)``, or a :class:`LatentSample`."""


@dataclass(frozen=True)
class FiniteSizeMoments:
    r"""Moments of a target, label map and correction; each ``*_error`` is a standard error.

    Attributes
    ----------
    heights, heights_error : ndarray of shape (p,)
        :math:`\theta_i`, height of each spike above the shift of the bulk.
    noise, noise_error : float
        :math:`\tau_2=E[T^2\|K\|_F^2]/D^2`.
    couplings, couplings_error : ndarray of shape (p,)
        :math:`\tau_{2h,i}`, squared norm that one sample takes from direction i, over D.
    label_second_moment, label_second_moment_error : float
        :math:`E[T^2]`.
    shift, shift_error : float
        :math:`E[T(\|F\|^2/D-1)]`, by which the whole spectrum of the plain matrix is moved; 0 for the
        corrected one.
    label_variance, label_variance_error : float
        :math:`\mathrm{Var}(y)`.
    label_map : str
        "identity", "tanh", "clip" or "custom".
    correction : str
        "none" or "wick".
    n_features : int
        :math:`D`.
    draws : int
        Number of Monte-Carlo draws.
    sample : WeightedSample
        Law of weights and couplings, for the resolvent formula.
    """

    heights: np.ndarray
    heights_error: np.ndarray
    noise: float
    noise_error: float
    couplings: np.ndarray
    couplings_error: np.ndarray
    label_second_moment: float
    label_second_moment_error: float
    shift: float
    shift_error: float
    label_variance: float
    label_variance_error: float
    label_map: str
    correction: str
    n_features: int
    draws: int
    sample: WeightedSample


def finite_size_moments(
    draw: LatentDraw,
    *,
    n_features: int,
    label_map: LabelMap = "identity",
    correction: Correction = "none",
    draws: int = 200_000,
    seed: int = 0,
) -> FiniteSizeMoments:
    r"""Moments of the per-sample kernel K, and of the label, in one pass.

    Plain matrix, :math:`K=FF^\top-I`:

    .. math::
        \tau_2=\frac{E[T^2\|F\|^4]}{D^2},\quad \tau_{2h,i}=\frac{E[T^2h_i^2\|F\|^2]}D,\quad
        \theta_i=E[T(h_i^2-1)]-E\Big[T\Big(\frac{\|F\|^2}D-1\Big)\Big],

    to leading order in 1/D (kept exactly here): the second term of :math:`\theta_i` moves bulk and
    spikes alike. The Wick-corrected kernel of degree 2,
    :math:`K[U]=\langle F,U\rangle F-U-(\tilde XU+U\tilde X)`, has

    .. math::
        \theta_i=E\big[T\big(h_i^2-1-2(\|M_ix\|^2-1)\big)\big],

    no shift, and noise of its own; these are exact if the draw brings the corrected kernel
    (:func:`quadratic_draw`). Without it the plain formulas stand in, which overstate the heights of
    strong features by a relative :math:`4/d`.

    Parameters
    ----------
    draw : callable
        ``draw(n, rng) -> (y, h, squared_norm)`` or :class:`LatentSample`.
    n_features : int
        :math:`D`.
    label_map : {"identity", "tanh", "clip"} or callable
        :math:`t` of the standardised labels, centred afterwards.
    correction : {"none", "wick"}
        Which matrix.
    draws : int
        Monte-Carlo draws, at least 320.
    seed : int
        The draws depend on it alone.

    Returns
    -------
    FiniteSizeMoments
        With standard errors from the spread of 32 batches, themselves known to 13 %.

    Raises
    ------
    InvalidData
        If the draw returns other shapes, or constant labels.
    InvalidParameter
        If an argument is out of range.

    Notes
    -----
    Time that of the draw, then O(draws p); memory O(draws p). Derived; backed by
    ``tests/models/sequential/test_finite_size.py`` (exact moments, population matrix, simulated spectra).

    Examples
    --------
    >>> draw = gaussian_draw(weights=np.array([0.8, -0.6]), n_features=500)
    >>> found = finite_size_moments(draw, n_features=500, draws=20_000)
    >>> bool(np.all(np.abs(found.heights - np.sqrt(2) * np.array([0.8, -0.6])) < 0.1))
    True
    """
    check_positive(n_features=n_features)
    if draws < 10 * BATCHES:
        raise InvalidParameter(f"draws is {draws}; allowed: an integer of at least {10 * BATCHES}.")
    if correction not in ("none", "wick"):
        raise InvalidParameter(unknown_choice("correction", correction, ["none", "wick"]))
    drawn = draw(draws, random_stream("finite-size moments", seed))
    one = drawn if isinstance(drawn, LatentSample) else LatentSample(*drawn)
    if one.labels.shape != (draws,) or one.latent.shape[:1] != (draws,) or one.latent.ndim != 2:
        raise InvalidData(
            f"the draw returned labels of shape {one.labels.shape} and latent features of shape "
            f"{one.latent.shape}; allowed: ({draws},) and ({draws}, p)."
        )
    exact = correction == "wick" and one.corrected is not None
    kernel = one.corrected if exact else None
    if kernel is None:
        kernel = plain_kernel(
            latent=one.latent, squared_norm=one.squared_norm, n_features=n_features
        )
    excess = one.squared_norm / n_features - 1
    rows = [slice(k * draws // BATCHES, (k + 1) * draws // BATCHES) for k in range(BATCHES)]
    # Labels are standardised batch by batch, so that the errors know of it.
    batches = [_means(one.labels, kernel, excess, label_map, some, exact) for some in rows]
    means = _means(one.labels, kernel, excess, label_map, slice(None), exact)
    errors = {
        name: np.std([batch[name] for batch in batches], axis=0, ddof=1) / np.sqrt(BATCHES)
        for name in means
    }
    plain = correction == "none"
    T = apply_label_map(one.labels, label_map)
    return FiniteSizeMoments(
        heights=means["heights"],
        heights_error=errors["heights"],
        noise=float(means["noise"]),
        noise_error=float(errors["noise"]),
        couplings=means["couplings"],
        couplings_error=errors["couplings"],
        label_second_moment=float(means["second"]),
        label_second_moment_error=float(errors["second"]),
        shift=float(means["shift"]) if plain else 0.0,
        shift_error=float(errors["shift"]) if plain else 0.0,
        label_variance=float(means["variance"]),
        label_variance_error=float(errors["variance"]),
        label_map=label_map if isinstance(label_map, str) else "custom",
        correction=correction,
        n_features=n_features,
        draws=draws,
        sample=compress_sample(T * kernel.size, T[:, None] ** 2 * kernel.coupling),
    )


def _means(
    labels: np.ndarray,
    kernel: SampleKernel,
    excess: np.ndarray,
    label_map: LabelMap,
    rows: slice,
    exact: bool,
) -> dict[str, np.ndarray]:
    """Every moment from some of the draws."""
    T, squares = apply_label_map(labels[rows], label_map), labels[rows].var()
    shift = T @ excess[rows] / T.size
    # T has mean zero: only the covariance with the kernel counts.
    heights = T @ kernel.diagonal[rows] / T.size
    return {
        "heights": heights if exact else heights - shift,
        "noise": np.mean((T * kernel.size[rows]) ** 2),
        "couplings": T**2 @ kernel.coupling[rows] / T.size,
        "second": np.mean(T**2),
        "shift": shift,
        "variance": squares,
    }


def gaussian_draw(
    *, weights: np.ndarray, n_features: int, readout: Readout | None = None
) -> LatentDraw:
    r"""Draw of the Gaussian-equivalent target with orthonormal directions.

    .. math:: h\sim N(0,I_p),\qquad y=g\Big(\frac1{\sqrt2}\sum_i\lambda_i(h_i^2-1)\Big),

    :math:`\|F\|^2=\|h\|^2+\chi^2_{D-p}`.

    Parameters
    ----------
    weights : array of shape (p,)
        :math:`\lambda_i`.
    n_features : int
        :math:`D\ge p`.
    readout : callable, optional
        :math:`g`, acting entry by entry; the identity by default.

    Returns
    -------
    callable
        For :func:`finite_size_moments`; O(n p).

    Raises
    ------
    InvalidParameter
        If there are more weights than features.

    Examples
    --------
    >>> draw = gaussian_draw(weights=np.ones(1), n_features=3)
    >>> draw(5, np.random.default_rng(0)).latent.shape
    (5, 1)
    """
    strengths = np.asarray(weights, dtype=np.float64)
    if strengths.ndim != 1 or not 1 <= strengths.size <= n_features:
        raise InvalidParameter(
            f"weights have shape {strengths.shape} and n_features is {n_features}; allowed: (p,) "
            "with 1 <= p <= n_features."
        )
    rest = n_features - strengths.size

    def draw(n: int, rng: np.random.Generator) -> LatentSample:
        latent = rng.standard_normal((n, strengths.size))
        outside = rng.chisquare(rest, n) if rest else 0.0
        return LatentSample(
            _label(latent, strengths, readout), latent, np.sum(latent**2, axis=1) + outside
        )

    return draw


def quadratic_draw(
    *, matrices: np.ndarray, weights: np.ndarray, readout: Readout | None = None
) -> LatentDraw:
    r"""Draw of the target with true features of degree 2, corrected kernel included.

    .. math:: h_i=\frac{x^\top M_ix-\mathrm{tr}M_i}{\sqrt2},\qquad x\sim N(0,I_d).

    Parameters
    ----------
    matrices : array of shape (p, d, d)
        :math:`M_i`, symmetric; scaled to :math:`\|M_i\|_F=1` here.
    weights : array of shape (p,)
        :math:`\lambda_i`.
    readout : callable, optional
        :math:`g`; the identity by default.

    Returns
    -------
    callable
        For :func:`finite_size_moments`; O(n p d^2), memory O(n p).

    Raises
    ------
    InvalidData
        If shapes disagree or a matrix is zero.

    Examples
    --------
    >>> M = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    >>> draw = quadratic_draw(matrices=M, weights=np.ones(1))
    >>> draw(7, np.random.default_rng(0)).corrected.diagonal.shape
    (7, 1)
    """
    M, strengths = np.asarray(matrices, np.float64), np.asarray(weights, np.float64)
    if M.ndim != 3 or M.shape[1] != M.shape[2] or strengths.shape != M.shape[:1]:
        raise InvalidData(
            f"matrices have shape {M.shape} and weights {strengths.shape}; allowed: (p, d, d), (p,)."
        )
    norms = np.linalg.norm(M, axis=(1, 2))
    if not (norms > 0).all():
        raise InvalidData("a matrix is zero; a feature needs a direction.")
    M = M / norms[:, None, None]
    features, d = M.shape[:2]
    traces = np.trace(M, axis1=1, axis2=2)
    stacked = M.transpose(1, 0, 2).reshape(d, -1)

    def draw(n: int, rng: np.random.Generator) -> LatentSample:
        latent, images, s = np.empty((n, features)), np.empty((n, features)), np.empty(n)
        for start in range(0, n, BATCH_ROWS):
            rows = slice(start, min(start + BATCH_ROWS, n))
            X = rng.standard_normal((rows.stop - start, d))
            moved = (X @ stacked).reshape(len(X), features, d)
            images[rows] = np.einsum("npd,npd->np", moved, moved)
            latent[rows] = (np.einsum("nd,npd->np", X, moved) - traces) / np.sqrt(2)
            s[rows] = np.einsum("nd,nd->n", X, X)
        kernel = corrected_kernel(
            latent=latent,
            squared_input_norm=s,
            squared_images=images,
            traces=traces,
            dimension=d,
        )
        return LatentSample(
            _label(latent, strengths, readout), latent, (s**2 - 2 * s + d) / 2, kernel
        )

    return draw


def _label(latent: np.ndarray, weights: np.ndarray, readout: Readout | None) -> np.ndarray:
    index = (latent**2 - 1) @ weights / np.sqrt(2)
    return index if readout is None else np.asarray(readout(index), dtype=np.float64)
