"""Moments behind the theory of sequential recovery: exact where known, else Monte Carlo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, cast

import numpy as np

from solvable.arrays import check_positive, random_stream
from solvable.errors import InvalidData, InvalidParameter, unknown_choice
from solvable.moment_spectrum.cubic import cubic_law
from solvable.moment_spectrum.degree_two_background import QuadraticBackground, quadratic_background
from solvable.moment_spectrum.draws import LatentDraw, LatentSample, target_draw
from solvable.moment_spectrum.latent_draws import LatentDraws, latent_draws
from solvable.moment_spectrum.operator_draws import (
    REFERENCE,
    drawn_background,
    is_beyond,
    is_drawn,
)
from solvable.moment_spectrum.rotated_draw import (
    can_rotate,
    mean_index_variance,
    mean_traces,
    rotated_draw,
)
from solvable.moment_spectrum.sample_kernel import SampleKernel, plain_kernel
from solvable.moment_spectrum.spike_heights import controlled_mean, exact_heights
from solvable.moment_spectrum.spike_law import SpikeLaw, ranking_room
from solvable.moment_spectrum.target_protocol import MomentTarget
from solvable.operators import apply_label_map
from solvable.operators.base import Correction
from solvable.operators.labels import LabelMap
from solvable.spectra.structured_spikes import WeightedSample, compress_sample

BATCHES = 32
"""Batches of one draw whose spread gives the standard errors, themselves known to 13 %."""

DRAWS = 200_000
"""Monte-Carlo draws behind the moments, over all targets."""


@dataclass(frozen=True)
class Smaller:
    """Moments of the same target in fewer dimensions, where operators are drawn."""

    moments: FiniteSizeMoments
    reach: float  # part of the law's error there that is left in all dimensions


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
    products : ndarray of shape (p - 1,)
        :math:`E[T^2h_i^2h_{i+1}^2]`, for :func:`~solvable.theory.neighbour_mixing`.
    label_map : str
        "identity", "tanh", "clip" or "custom".
    correction : str
        "none" or "wick".
    n_features : int
        :math:`D`.
    draws : int
        Number of Monte-Carlo draws.
    law : SpikeLaw
        What the resolvent formula needs: heights, law of the weights, background.
    learner_noise : float
        What a learner takes for :math:`\tau_2`: above degree 1 always the corrected one.
    latent : tuple of LatentDraws
        Draws of the second layer, target by target, that the error is computed on.
    mixing : ndarray of shape (p, p), optional
        Mean squared inner products of the directions (columns) with the orthonormal basis (rows) that
        everything above is about, where they are not orthogonal.
    smaller : Smaller, optional
        Moments in fewer dimensions, where operators are drawn, of a plain operator of degree 2 in many.
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
    products: np.ndarray
    label_map: str
    correction: str
    n_features: int
    draws: int
    law: SpikeLaw
    learner_noise: float
    latent: tuple[LatentDraws, ...]
    mixing: np.ndarray | None = None
    smaller: Smaller | None = None

    @property
    def sample(self) -> WeightedSample:
        """Law of weights and couplings, for the resolvent formula."""
        return self.law.sample


def finite_size_moments(
    draw: LatentDraw | MomentTarget | Sequence[MomentTarget],
    *,
    n_features: int,
    label_map: LabelMap = "identity",
    correction: Correction = "none",
    draws: int = DRAWS,
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
    (:func:`quadratic_draw`, targets). Without it the plain formulas stand in, which overstate the
    heights of strong features by a relative :math:`4/d`.

    Notes
    -----
    Time that of the draw, then O(draws p); memory O(draws p). The index is a control variate where
    its mean is known: heights of :math:`T=y` have no Monte-Carlo noise. Derived; backed by
    ``tests/models/sequential/test_finite_size.py`` (exact moments, population matrix, simulated
    spectra) and ``tests/models/sequential/test_moments.py``.
    """
    check_positive(n_features=n_features)
    if draws < 10 * BATCHES:
        raise InvalidParameter(f"draws is {draws}; allowed: an integer of at least {10 * BATCHES}.")
    if correction not in ("none", "wick"):
        raise InvalidParameter(unknown_choice("correction", correction, ["none", "wick"]))
    targets: LatentDraw | Sequence[MomentTarget]
    targets = draw if callable(draw) or isinstance(draw, Sequence) else [draw]
    rotated = not callable(targets) and len(targets) > 1 and can_rotate(targets[0])
    drawn = not callable(targets) and is_drawn(targets[0], label_map, plain=correction == "none")
    if callable(targets):
        streams = [(targets, random_stream("finite-size moments", seed))]
    else:
        streams = [
            (
                rotated_draw(target) if rotated else target_draw(target),
                random_stream("sequential-recovery", "moments", target.seed),
            )
            for target in targets
        ]
        if rotated and targets[0].first_layer == "orthonormal":
            streams = streams[:1]  # the draws are those of all rotations already
    arguments = (n_features, label_map, correction)
    parts, latent, batches, cubic, mixing = [], [], [], [], []
    for k, (one, rng) in enumerate(streams):
        sample = _drawn(one, draws // len(streams), rng)
        # The background is of the first target: its matrices stand for those of all.
        exact = None
        if sample.strengths is not None:
            exact = exact_heights(
                sample.strengths,
                sample.gram,
                sample.matrices,
                corrected=correction == "wick",
                dimension=sample.dimension,
            )
        parts.append(_part(sample, exact, *arguments, whole=k == 0))
        if sample.mixing is not None:
            mixing.append(sample.mixing**2)
        if sample.cubic is not None:
            cubic.append((sample.cubic, apply_label_map(sample.labels, label_map)))
        # Directions of drawn operators lean already.
        leans = correction == "wick" and sample.cubic is None and not (rotated and drawn)
        T = apply_label_map(sample.labels, label_map) if leans else None
        latent += latent_draws(sample, n_features, place=k, targets=len(streams), T=T)
        if len(streams) == 1:
            borders = [k * draws // BATCHES for k in range(BATCHES + 1)]
            batches = [
                _part(sample.rows(slice(*ends)), exact, *arguments, whole=False).means
                for ends in pairwise(borders)
            ]
    moments = _pooled(parts, batches, tuple(latent), *arguments, draws=draws)
    if cubic and sample.strengths is not None:
        forms, mapped = zip(*cubic, strict=True)
        law = cubic_law(forms, mapped, sample.strengths, corrected=correction == "wick")
        moments = replace(moments, law=law)
    if mixing:
        moments = replace(moments, mixing=np.mean(mixing, axis=0))
    if callable(targets):
        return moments
    first = targets[0]
    # Gaussian features are inputs themselves.
    size = (n_features, 1) if first.inputs == "gaussian" else (first.dimension, first.degree)
    moments = replace(moments, law=replace(moments.law, room=ranking_room(*size, correction)))
    if rotated:
        background = drawn_background(moments.law, targets, label_map)
        moments = replace(moments, law=replace(moments.law, background=background))
        if correction == "none" and is_beyond(first):
            few: list[MomentTarget] = [replace(cast(Any, t), dimension=REFERENCE) for t in targets]
            count = few[0].n_features_total
            below = finite_size_moments(few, n_features=count, label_map=label_map, draws=draws)
            # First and second order in 1/d are both there: 1.5 was between them for six settings.
            smaller = Smaller(below, float((REFERENCE / first.dimension) ** 1.5))
            moments = replace(moments, smaller=smaller)
    if targets[0].readout == "identity":
        known = targets[: len(streams)]
        variances = [mean_index_variance(one) if rotated else one.index_variance for one in known]
        return replace(moments, label_variance=float(np.mean(variances)))
    return moments


@dataclass(frozen=True)
class _Part:
    """What one sample contributes: means, and weights and couplings draw by draw."""

    means: dict[str, np.ndarray]
    weights: np.ndarray
    couplings: np.ndarray
    background: QuadraticBackground | None
    shifted: bool  # whether the heights of the law are relative to the shift of the bulk


def _drawn(draw: LatentDraw, draws: int, rng: np.random.Generator) -> LatentSample:
    """Draw, and check the shapes."""
    drawn = draw(draws, rng)
    sample = drawn if isinstance(drawn, LatentSample) else LatentSample(*drawn)
    labels, latent = sample.labels.shape, sample.latent.shape
    if labels != (draws,) or latent[:1] != (draws,) or len(latent) != 2:
        raise InvalidData(
            f"the draw returned labels of shape {labels} and latent features of shape {latent}; "
            f"allowed: ({draws},) and ({draws}, p)."
        )
    return sample


def _part(
    sample: LatentSample,
    exact: np.ndarray | None,
    n_features: int,
    label_map: LabelMap,
    correction: str,
    *,
    whole: bool,
) -> _Part:
    """Moments of one sample; the background of a whole one only."""
    wick = correction == "wick" and sample.corrected is not None
    kernel = sample.corrected if wick else None
    if kernel is None:
        kernel = plain_kernel(
            latent=sample.latent, squared_norm=sample.squared_norm, n_features=n_features
        )
    T = apply_label_map(sample.labels, label_map)
    # The plain operator of degree 2 is the corrected one and a contraction with the input: the law
    # of its weights is the corrected one's, the contraction is part of the background.
    law = sample.corrected or kernel
    # theta_i = E[T <A_i, K A_i>]; T has mean zero, so that only the covariance counts
    heights = spike_heights = _heights(sample, T, kernel, exact)
    shift = T @ (sample.squared_norm / n_features - 1) / T.size
    shifted = sample.corrected is None and not sample.gaussian
    if shifted:
        # Without a background to hold it, the shift of the bulk is taken out.
        spike_heights = heights - np.mean(T * kernel.rest) + T.mean() * kernel.rest.mean()
    h2 = sample.latent**2
    means = {
        "heights": heights if wick else heights - shift,
        "spike_heights": spike_heights,
        "noise": np.mean((T * kernel.size) ** 2),  # tau_2 = E[T^2 |K|_F^2] / D^2
        "learner_noise": np.mean((T * law.size) ** 2),
        "couplings": T**2 @ kernel.coupling / T.size,  # tau_2h = E[T^2 |P K A_i|^2] / D
        "second": np.mean(T**2),
        "shift": shift if correction == "none" else np.zeros(()),
        "variance": sample.labels.var(),
        "products": np.mean(T[:, None] ** 2 * h2[:, 1:] * h2[:, :-1], axis=0),
    }
    return _Part(
        means,
        T * law.rest,
        T[:, None] ** 2 * law.outer,
        _background(sample, T, kernel, wick) if whole else None,
        shifted,
    )


def _heights(
    sample: LatentSample, T: np.ndarray, kernel: SampleKernel, exact: np.ndarray | None
) -> np.ndarray:
    """E[T <A_i, K A_i>], with the index as control variate where its mean is known."""
    if sample.strengths is None or exact is None:
        return np.asarray(T @ kernel.diagonal / T.size)
    index = (sample.latent**2 - 1) @ sample.strengths
    heights = controlled_mean(T, kernel.diagonal, index, exact)
    if heights.size < 32:
        return heights
    # A height is a smooth function of its weight, and of the exact one: so many need few draws.
    basis = np.column_stack([exact, *(sample.strengths**k for k in range(4))])
    return np.asarray(basis @ np.linalg.lstsq(basis, heights, rcond=None)[0])


def _background(
    sample: LatentSample, T: np.ndarray, kernel: SampleKernel, wick: bool
) -> QuadraticBackground | None:
    """Population matrix of degree 2 beside the spikes."""
    M, corrected, gram = sample.matrices, sample.corrected, sample.gram
    if corrected is None or gram is None:
        return None
    if sample.dimension is not None:
        d, squares = sample.dimension, mean_traces(gram, sample.dimension).squares
    elif M is not None:
        flat = (M @ M).reshape(len(M), -1)
        d, squares = M.shape[1], flat @ flat.T
    else:
        return None
    # Up to the chaos of degree 4 that T holds it is (1/2) sum_i theta_i (h_i^2 - 1) / (1 + 4/d).
    heights = T @ corrected.diagonal / T.size
    norm = float(np.linalg.norm(heights))
    weights = heights / norm
    second = None
    if not wick:
        # E[T 2 tr((x x^T - I) M_i^2)] = 2 beta <S, M_i^2> with S = sum_i lambda_i M_i^2
        contracted = T @ (kernel.diagonal - corrected.diagonal) / T.size
        second = float(weights @ contracted / 2 / (weights @ squares @ weights))
    return quadratic_background(
        matrices=np.empty((0, d, d)) if M is None else M,
        weights=weights,
        attenuation=norm / (np.sqrt(2) * (1 + 4 / d)),
        second_chaos=second,
        # |x x^T - I|_F^2 = 2 |F|^2
        contraction_noise=float(np.mean(T**2 * 2 * sample.squared_norm) / d),
        dimension=sample.dimension,
    )


def _pooled(
    parts: list[_Part],
    batches: list[dict[str, np.ndarray]],
    latent: tuple[LatentDraws, ...],
    n_features: int,
    label_map: LabelMap,
    correction: str,
    *,
    draws: int,
) -> FiniteSizeMoments:
    """Means over the parts, with the standard errors that the batches, or else the parts, show."""
    batches = batches or [part.means for part in parts]
    means = {name: np.mean([part.means[name] for part in parts], axis=0) for name in parts[0].means}
    errors = {
        name: np.std([batch[name] for batch in batches], axis=0, ddof=1) / np.sqrt(len(batches))
        for name in means
    }
    weights = np.concatenate([part.weights for part in parts])
    shift = float(means["shift"])
    law = SpikeLaw(
        heights=means["spike_heights"],
        sample=compress_sample(
            weights,
            np.concatenate([part.couplings for part in parts]),
            atoms=4_000 if means["heights"].size <= 64 else 1_000,
        ),
        background=parts[0].background,
        n_features=n_features - means["heights"].size,
        shift=shift if parts[0].shifted else 0.0,
    )
    return FiniteSizeMoments(
        heights=means["heights"],
        heights_error=errors["heights"],
        noise=float(means["noise"]),
        noise_error=float(errors["noise"]),
        couplings=means["couplings"],
        couplings_error=errors["couplings"],
        label_second_moment=float(means["second"]),
        label_second_moment_error=float(errors["second"]),
        shift=shift,
        shift_error=float(errors["shift"]),
        label_variance=float(means["variance"]),
        label_variance_error=float(errors["variance"]),
        products=means["products"],
        label_map=label_map if isinstance(label_map, str) else "custom",
        correction=correction,
        n_features=n_features,
        draws=draws,
        law=law,
        learner_noise=float(means["learner_noise"]),
        latent=latent,
    )
