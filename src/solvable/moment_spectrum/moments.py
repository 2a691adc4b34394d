r"""Moments for the theory of sequential recovery: exact where known, otherwise Monte Carlo.

Sample :math:`\mu` adds :math:`T_\mu K_\mu/n` to the operator. With :math:`K=FF^\top-I`

.. math::
    \tau_2=\frac{E[T^2\|F\|^4]}{D^2},\quad \tau_{2h,i}=\frac{E[T^2h_i^2\|F\|^2]}D,\quad
    \theta_i=E[T(h_i^2-1)]

to leading order in 1/D; the code is exact (sequential 3) (sequential 4). The Wick-corrected kernel of
degree 2, :math:`K[U]=\langle F,U\rangle F-U-(\tilde XU+U\tilde X)`, has
:math:`\theta_i=E[T(h_i^2-1-2(\|M_ix\|^2-1))]` (sequential 20).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from solvable.arrays import random_stream
from solvable.moment_spectrum.cubic import cubic_law
from solvable.moment_spectrum.degree_two_background import QuadraticBackground, quadratic_background
from solvable.moment_spectrum.draws import (
    LatentSample,
    draw_sample,
    index_energies,
    is_cubic,
    is_quadratic,
)
from solvable.moment_spectrum.latent_draws import LatentDraws, latent_draws
from solvable.moment_spectrum.operator_draws import (
    REFERENCE,
    drawn_background,
    is_beyond,
    is_drawn,
)
from solvable.moment_spectrum.sample_kernel import plain_kernel
from solvable.moment_spectrum.spike_heights import controlled_mean, exact_heights
from solvable.moment_spectrum.spike_law import SpikeLaw, ranking_room
from solvable.moment_spectrum.target_protocol import MomentTarget
from solvable.operators import apply_label_map
from solvable.operators.base import Correction
from solvable.operators.labels import LabelMap
from solvable.spectra.structured_spikes import compress_sample

MOST_PAIRS = 256
"""Largest number of features for which the moments of all pairs are computed."""

DRAWS = 200_000
"""Total number of Monte Carlo draws for the moments of all targets."""


@dataclass(frozen=True)
class Smaller:
    """Moments of the same target in a smaller dimension, in which operators are drawn."""

    moments: FiniteSizeMoments
    reach: float  # factor that transfers the error of the formula to dimension d


@dataclass(frozen=True)
class FiniteSizeMoments:
    """Moments of a target for a label map and a correction."""

    law: SpikeLaw  # spike heights, distribution of the weights, background
    latent: tuple[LatentDraws, ...]  # draws for the second layer, one entry per target
    n_features: int  # number D of features
    linear: bool  # True if the readout is the identity
    label_map: str
    label_second_moment: float  # second moment E[T²] of the mapped label
    label_variance: float  # variance of the label y
    learner_noise: float  # tau_2 as the learner estimates it, corrected for degrees above 1
    shift: float  # spectrum's mean E[T (|F|² / D - 1)]; 0 if corrected
    products: np.ndarray  # mixed moments E[T² h_i² h_(i+1)²], (p - 1,)
    pair_products: (
        np.ndarray
    )  # mixed moments E[T² h_i² h_j²], (p, p); NaN above MOST_PAIRS features
    # Mean squared inner products of the orthonormal basis vectors (rows) and non-orthogonal directions
    # (columns), (p, p).
    mixing: np.ndarray | None = None
    smaller: Smaller | None = (
        None  # for operators of degree 2 without correction in large dimensions
    )
    # Errors of drawn matrices or operators, by the identity of the draws, which are kept with the errors
    known: dict[int, tuple[object, dict[str, Any]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )


def finite_size_moments(
    targets: Sequence[MomentTarget],
    *,
    label_map: LabelMap = "identity",
    correction: Correction = "none",
    draws: int = DRAWS,
) -> FiniteSizeMoments:
    """Compute moments of targets that differ in their first layer; the cost is O(draws p)."""
    first, wick = targets[0], correction == "wick"
    p, d, D = first.features, first.dimension, first.n_features_total
    # One target suffices, because the draws over rotations average over all orthonormal first layers.
    rotated = first.first_layer == "orthonormal" and not is_cubic(first)
    sources = targets[:1] if rotated else targets
    drawn = not is_cubic(first) and is_drawn(first, label_map, plain=not wick)
    parts, latent, cubic, mapped, mixing = [], [], [], [], []
    for place, target in enumerate(sources):
        rng = random_stream("sequential-recovery", "moments", target.seed)
        sample = draw_sample(target, draws // len(sources), rng)
        T = apply_label_map(sample.labels, label_map)
        parts.append(_part(sample, T, target, wick=wick))
        if sample.form.mixing is not None:
            mixing.append(sample.form.mixing**2)
        if sample.cubic is not None:
            cubic.append(sample.cubic)
            mapped.append(T)
        # Drawn operators already contain this correlation between noise and feature.
        leans = T if wick and sample.cubic is None and not drawn else None
        latent += latent_draws(sample, D, place=place, targets=len(sources), T=leans)
    means = {name: np.mean([part.means[name] for part in parts], axis=0) for name in parts[0].means}
    if cubic:
        law: SpikeLaw = cubic_law(cubic, mapped)
    else:
        law = SpikeLaw(
            heights=means["heights"],
            sample=compress_sample(
                np.concatenate([part.weights for part in parts]),
                np.concatenate([part.couplings for part in parts]),
                atoms=4_000 if p <= 64 else 1_000,
            ),
            background=parts[0].background,
            n_features=D - p,
            # Gaussian features are the inputs, of degree 1.
            room=ranking_room(*((D, 1) if first.inputs == "gaussian" else (d, first.degree)), wick),
        )
        law = replace(law, background=drawn_background(law, targets, label_map))
    variance = float(means["variance"])
    if first.readout == "identity":
        known = [t.index_variance if cubic else index_energies(t)[1] for t in sources]
        variance = float(np.mean(known)) + first.label_noise**2
    smaller = None
    if not wick and is_beyond(first):
        few: list[MomentTarget] = [replace(cast(Any, t), dimension=REFERENCE) for t in targets]
        below = finite_size_moments(few, label_map=label_map, draws=draws)
        # Orders 1 and 2 in 1/d contribute; the power 1.5 fits six settings with 48 to 80 inputs.
        smaller = Smaller(below, float((REFERENCE / d) ** 1.5))
    return FiniteSizeMoments(
        law=law,
        latent=tuple(latent),
        n_features=D,
        linear=first.readout == "identity",
        label_map=label_map if isinstance(label_map, str) else "custom",
        label_second_moment=float(means["second"]),
        label_variance=variance,
        learner_noise=float(means["learner_noise"]),
        shift=0.0 if wick else float(means["shift"]),
        products=means["products"],
        pair_products=means["pairs"],
        mixing=np.mean(mixing, axis=0) if mixing else None,
        smaller=smaller,
    )


@dataclass(frozen=True)
class _Part:
    """Means over one set of draws, and the weights and couplings of the draws."""

    means: dict[str, np.ndarray]
    weights: np.ndarray
    couplings: np.ndarray
    background: QuadraticBackground | None


def _part(sample: LatentSample, T: np.ndarray, target: MomentTarget, *, wick: bool) -> _Part:
    """Moments of one set of draws with mapped labels T."""
    h2, D = sample.latent**2, target.n_features_total
    kernel = plain_kernel(latent=sample.latent, squared_norm=sample.squared_norm, n_features=D)
    # The plain operator of degree 2 is the corrected operator plus a contraction. Its weights have the
    # distribution for the corrected operator, and the contraction is part of the background.
    law = kernel if sample.corrected is None else sample.corrected
    # theta_i = E[T <A_i, K A_i>]   (sequential 3; arXiv:2605.14567, Lemma C.1); T has mean zero
    diagonal = law.diagonal if wick else kernel.diagonal
    heights = np.asarray(T @ diagonal / T.size)
    if sample.cubic is None:
        heights = _controlled_heights(sample, T, diagonal, target, wick=wick)
    background = None
    if is_quadratic(target):
        contracted = T @ (kernel.diagonal - law.diagonal) / T.size
        background = quadratic_background(
            T @ law.diagonal / T.size,
            target.dimension,
            contracted=None if wick else contracted,
            # squared norm |x x^T - I|_F² = 2 |F|²
            contraction_noise=float(np.mean(T**2 * 2 * sample.squared_norm) / target.dimension),
        )
    means = {
        "heights": heights,
        "learner_noise": np.mean((T * law.size) ** 2),
        "second": np.mean(T**2),
        "shift": T @ (sample.squared_norm / D - 1) / T.size,
        "variance": sample.labels.var(),
        "products": np.mean(T[:, None] ** 2 * h2[:, 1:] * h2[:, :-1], axis=0),
        "pairs": _pair_products(T, h2),
    }
    return _Part(means, T * law.rest, T[:, None] ** 2 * law.outer, background)


def _pair_products(T: np.ndarray, h2: np.ndarray) -> np.ndarray:
    """Mixed moments E[T² h_i² h_j²], or NaN in their place for too many features."""
    if h2.shape[1] > MOST_PAIRS:
        return np.full((1, 1), np.nan)
    return np.asarray((T[:, None] ** 2 * h2).T @ h2 / T.size)


def _controlled_heights(
    sample: LatentSample, T: np.ndarray, diagonal: np.ndarray, target: MomentTarget, *, wick: bool
) -> np.ndarray:
    """Heights E[T <A_i, K A_i>], estimated with the index as control variate of exactly known mean."""
    strengths = sample.form.strengths
    dimension = target.dimension if is_quadratic(target) else None
    exact = exact_heights(strengths, corrected=wick, dimension=dimension)
    heights = controlled_mean(T, diagonal, (sample.latent**2 - 1) @ strengths, exact)
    if heights.size < 32:
        return heights
    # Heights are a smooth function of the weight and of the exact height, so a fit reduces their noise.
    basis = np.column_stack([exact, *(strengths**k for k in range(4))])
    return np.asarray(basis @ np.linalg.lstsq(basis, heights, rcond=None)[0])
