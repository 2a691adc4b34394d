"""Predicted metrics of sequential feature recovery, under the names of the measured ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.points import NO_PREDICTION, Metrics, listed
from solvable.models.sequential.errors import fresh_rows
from solvable.models.sequential.kernel_head import kernel_head_error
from solvable.models.sequential.parameters import SequentialParameters
from solvable.models.sequential.target import make_target
from solvable.models.sequential.theory import SequentialPrediction, predict_from
from solvable.moment_spectrum.cubic import check_cubic, only_known
from solvable.moment_spectrum.degree_two_background import QuadraticBackground
from solvable.moment_spectrum.draws import index_energies, is_cubic, is_quadratic
from solvable.moment_spectrum.kernel_degrees import best_kernel_error
from solvable.moment_spectrum.latent_draws import fit_last_layer
from solvable.moment_spectrum.moments import DRAWS, FiniteSizeMoments, finite_size_moments
from solvable.moment_spectrum.neighbour_mixing import neighbour_mixing
from solvable.moment_spectrum.operator_draws import InterpolatedSpikes, OperatorDraws
from solvable.moment_spectrum.spike_law import SpikeLaw, check_dimension, check_range
from solvable.spectra.density import SpectralDensity, weighted_density

TARGETS = 32
"""Number of targets over which moments are averaged, as squared norms of random directions vary by
sqrt(2/D)."""


UNKNOWN_ERRORS = (
    "normalised_mse",
    "normalised_mse_least_squares",
    "normalised_mse_in_sample",
    "normalised_mse_shrinkage",
    "learned_energy",
)
"""Predictions that are missing where unmapped labels are not covered."""

FEWEST_INPUTS, MOST_RATIO = 14, 120

UNCOVERED = (
    f"normalised_mse is not predicted: with label_map=identity and fewer than {FEWEST_INPUTS} inputs, "
    f"more features than 0.4 times the inputs, or n/D above {MOST_RATIO}, the theory is up to 24 % too "
    "high. Set label_map=tanh, or change dimension, features or samples."
)


def _uncovered(parameters: SequentialParameters) -> bool:
    """Return True for unmapped labels outside the range in which their errors are predicted to 5 %."""
    d, p = parameters.dimension, parameters.feature_count
    squares = parameters.inputs == "hermite" and parameters.degree == 2
    unmapped = squares and parameters.label_map == "identity"
    outside = d < FEWEST_INPUTS or 5 * p > 2 * d or parameters.samples_per_feature > MOST_RATIO
    return unmapped and outside


def predict(parameters: SequentialParameters) -> Metrics:
    """Predicted metrics of a parameter set, and predicted quantities that are not measured."""
    check_dimension(parameters.dimension)
    check_range(parameters.samples, parameters.feature_count, parameters.n_features_total)
    moments = moments_of(parameters)
    n = parameters.samples
    theory = predict_from(moments, n)
    iterated = parameters.solver == "power-iteration"
    published = iterated or parameters.selection == "modulus"
    if published:
        _check_published(parameters)
        changed = published_overlaps(moments, theory, iterated=iterated)
        error = published_error(moments, theory, changed)
        theory = replace(theory, squared_overlap=changed, normalised_mse=np.array(error))
    overlap, eigenvalues = theory.squared_overlap, theory.eigenvalues
    if iterated:  # Rayleigh quotients of unconverged directions
        eigenvalues = np.full_like(eigenvalues, np.nan)
    if moments.mixing is not None:  # no eigenvalue belongs to a feature that mixes with others
        eigenvalues = np.where(np.diag(moments.mixing) > 0.5, eigenvalues, np.nan)
    mixing = neighbour_mixing(
        heights=moments.law.heights,
        products=moments.products,
        samples=n,
        squared_overlap=np.where(theory.recovered, overlap, 0.0),
    )
    if isinstance(drawn := moments.law.spikes(n), InterpolatedSpikes):
        eigenvalues = np.where(drawn.placed, eigenvalues, np.nan)
    expansion = expand(moments.law, moments.pair_products, n)
    inside, mixing = _shared(moments, expansion, overlap, mixing)
    errors = {
        "least-squares": float(theory.normalised_mse),
        "in-sample": float(theory.normalised_mse_in_sample),
        "shrinkage": float(theory.normalised_mse_shrinkage),
    }
    if parameters.second_layer == "kernel-ridge":
        errors["kernel-ridge"] = kernel_head_error(moments.latent, theory.squared_overlap)
    kernel = _kernel_floor(parameters)
    metrics: Metrics = {
        "squared_overlap": overlap.tolist(),
        "mean_squared_overlap": float(overlap.mean()),
        "lost_cosine": (1 - np.sqrt(overlap)).tolist(),
        "features_above_half": float(np.sum(overlap > 0.5)),
        "asymptotic_features_above_half": _number(
            recovered_count(moments.law, parameters.decay, n)
        ),
        "threshold_samples": listed(theory.threshold_samples),
        "eigenvalues": listed(eigenvalues),
        "bulk_edges": theory.bulk_edges.tolist(),
        "detection_edges": None,
        "noise_scale": float(theory.noise_scale),
        "detected_features": float(theory.recovered.sum()),
        "neighbour_mixing": listed(mixing),
        "loss_outside_span": listed(expansion.outside + theory.population_floor),
        "loss_inside_span": listed(inside),
        "height_gaps": listed(expansion.gaps),
        "davis_kahan_samples": listed(expansion.bound_samples),
        "normalised_mse": errors[parameters.second_layer],
        "normalised_mse_tail_only": float(theory.normalised_mse_tail_only),
        "normalised_mse_asymptotic": _number(asymptotic_error(moments.law, parameters.decay, n)),
        "learned_energy": 1 - errors[parameters.second_layer],
        "normalised_mse_least_squares": errors["least-squares"],
        "normalised_mse_in_sample": errors["in-sample"],
        "normalised_mse_shrinkage": errors["shrinkage"],
        "population_floor": theory.population_floor.tolist(),
        "label_variance": moments.label_variance,
        "spectrum": None,
        "polynomial_kernel_normalised_mse": kernel,
        "rbf_kernel_normalised_mse": kernel,
        "random_features_normalised_mse": kernel,
    }
    if published:
        p = parameters.feature_count
        metrics |= dict.fromkeys(("loss_outside_span", "loss_inside_span"), [None] * p)
        metrics["neighbour_mixing"] = [None] * (p - 1)
    if _uncovered(parameters):
        metrics |= dict.fromkeys(UNKNOWN_ERRORS) | {NO_PREDICTION: UNCOVERED}
    cubic = parameters.inputs == "hermite" and parameters.degree == 3
    return only_known(metrics, n) if cubic else metrics


def _shared(
    moments: FiniteSizeMoments, expansion: Expansion, overlap: np.ndarray, mixing: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Part along other features and mixing of neighbours, with the share of non-orthogonal directions."""
    if moments.mixing is None:
        return expansion.inside, mixing
    # Directions that are not orthogonal share eigenvectors at infinite n too. The shares <a_i, b_k>² of
    # other eigenvectors are added to the mixing by noise, which holds if both are small.
    own, left = np.diag(moments.mixing), np.maximum(1 - expansion.outside, 0)
    shared = (np.diag(moments.mixing, 1) + np.diag(moments.mixing, -1)) / 2
    added = shared * np.sqrt(overlap[1:] * overlap[:-1])
    apart = np.minimum(own[1:], own[:-1]) > 0.8
    return (
        np.where(own > 0.8, expansion.inside + left * (1 - own), np.nan),
        np.where(apart, mixing + added, np.nan),
    )


def _check_published(parameters: SequentialParameters) -> None:
    """Raise an error where the published algorithm has no prediction."""
    if parameters.second_layer not in ("least-squares", "kernel-ridge") or parameters.degree == 3:
        raise InvalidParameter(
            f"selection is {parameters.selection!r}, solver is {parameters.solver!r}, second_layer is "
            f"{parameters.second_layer!r} and degree is {parameters.degree}; allowed for predictions "
            "with selection=modulus or solver=power-iteration: second_layer=least-squares or "
            "kernel-ridge, and degree=1 or 2."
        )


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None


def chance(parameters: SequentialParameters, _: Metrics) -> Metrics:
    """Metrics of a learner with random directions and a constant prediction."""
    p = parameters.feature_count
    share = p / parameters.n_features_total
    return {
        "squared_overlap": [share] * p,
        "mean_squared_overlap": share,
        "neighbour_mixing": [1 / parameters.n_features_total] * (p - 1),
        "loss_outside_span": [1 - share] * p,
        "loss_inside_span": [(p - 1) / parameters.n_features_total] * p,
        "normalised_mse": 1.0,
    }


@lru_cache(maxsize=16)
def bulk_density(parameters: SequentialParameters) -> SpectralDensity | None:
    """Predicted density of the bulk; None for operators without correction and for degree 3."""
    law = moments_of(parameters).law
    known = law.background
    corrected = isinstance(known, QuadraticBackground | OperatorDraws) and not known.plain
    if known is not None and not corrected:
        return None
    background = known.at(parameters.samples) if known else None
    # The distribution of the sample weights is reduced to 2,000 quantiles.
    places = (np.arange(2_000) + 0.5) / 2_000
    chances = np.cumsum(law.sample.probabilities)
    return weighted_density(
        weights=np.interp(places, chances, law.sample.clipped(parameters.samples).weights),
        aspect_ratio=parameters.samples / law.n_features,
        background_variance=background.variance + float(background.atoms.var())
        if background
        else 0.0,
    )


def moments_of(parameters: SequentialParameters) -> FiniteSizeMoments:
    """Moments of a parameter set, from the cache if only parameters without effect on them changed."""
    same = {"samples": 2, "test_samples": 2, "kernel_samples": 0, "spectrum_samples": 0}
    return _moments(parameters.model_copy(update={**same, "second_layer": "least-squares"}))


@lru_cache(maxsize=64)
def _moments(parameters: SequentialParameters) -> FiniteSizeMoments:
    d, p = parameters.dimension, parameters.feature_count
    targets = [make_target(parameters, seed) for seed in range(TARGETS)]
    # About two million numbers are drawn. With many features fewer draws suffice, because the heights of
    # the spikes lie on a smooth curve.
    draws = int(np.clip(2e6 / p, 2_000, DRAWS))
    if is_cubic(targets[0]):
        check_cubic(d, p, parameters.correction)
        targets = targets[:4]
        draws = int(np.clip(1e10 / (d**3 * p * 4), DRAWS / 5, DRAWS / 2.5))
    return finite_size_moments(
        targets, label_map=parameters.label_map, correction=parameters.correction, draws=draws
    )


def _kernel_floor(parameters: SequentialParameters) -> float | None:
    """Least error of a rotation-invariant kernel, for degree 2 and the identity readout; else None."""
    count = TARGETS if parameters.first_layer == "random" else 1
    targets = [make_target(parameters, seed) for seed in range(count)]
    if not is_quadratic(targets[0]) or parameters.readout != "identity":
        return None
    share = float(np.mean([low / whole for low, whole in map(index_energies, targets)]))
    floor = best_kernel_error(
        samples=parameters.samples,
        dimension=parameters.dimension,
        energies={2: share, 4: 1 - share},
    )
    signal = float(np.mean([index_energies(target)[1] for target in targets]))
    noise = parameters.label_noise**2
    return (float(floor) * signal + noise) / (signal + noise)


@dataclass(frozen=True)
class Expansion:
    """Squared overlap that each learned direction loses, and samples that a bound demands."""

    outside: np.ndarray  # loss to directions outside the span of the features, (p,)
    inside: np.ndarray  # loss to the other features, (p,); NaN for equal heights
    gaps: np.ndarray  # distance of each height to the nearest other height or to zero, (p,)
    bound_samples: np.ndarray  # n at which the bound of Davis and Kahan reaches a half, (p,)


def expand(law: SpikeLaw, products: np.ndarray, samples: float) -> Expansion:
    """Expand the eigenvectors of spikes with mixed moments E[T² h_i² h_j²] at n samples."""
    theta, D = law.heights, law.n_features
    differences = theta[:, None] - theta
    np.fill_diagonal(differences, np.inf)
    # hat u_k = u_k + sum_j u_j (u_j^T Delta u_k) / (theta_k - theta_j) + P Delta u_k / theta_k
    # (sequential 28; arXiv:2605.14567, Equation 3.2), E (u_j^T Delta u_k)² = E[T² h_j² h_k²] / n,
    # E |P Delta u_k|² = D tau_2h / n
    coupling = law.sample.probabilities @ law.sample.couplings
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.sum(products / differences**2, axis=1) / samples
        outside = D * coupling / (samples * theta**2)
        gaps = np.minimum(np.abs(differences).min(axis=1), np.abs(theta))
        # sin² <= (2 |Delta| / gap)² with |Delta| = 2 s, s² = D tau_2 / n   (sequential 29)
        bound = 32 * D * law.noise / gaps**2
    return Expansion(outside, np.where(np.isfinite(inside), inside, np.nan), gaps, bound)


def half_recovery(law: SpikeLaw) -> np.ndarray:
    """Sample size at which each feature has a squared overlap of 1/2; infinite inside the bulk."""
    # c² = (nu - tau_2) / (nu - tau_2 + tau_2h) = 1/2 at nu = tau_2 + tau_2h   (sequential 8)
    coupling = law.sample.probabilities @ law.sample.couplings
    return np.asarray(law.thresholds * (1 + coupling / law.noise))


def recovered_count(law: SpikeLaw, decay: float, samples: float) -> float:
    """Number of features with a squared overlap above a half, as a power of n; NaN without decay."""
    if not decay:
        return float("nan")
    # m = (Z² n / D)^(1 / (2 gamma))   (sequential 30; arXiv:2605.14567, Corollary 3.1). The constant is
    # that of the weakest feature p.
    return float(law.heights.size * (samples / half_recovery(law)[-1]) ** (1 / (2 * decay)))


def asymptotic_error(law: SpikeLaw, decay: float, samples: float) -> float:
    """Normalised error of infinitely many features as a power law in n; NaN above 1 or gamma <= 1/2."""
    if decay <= 0.5:
        return float("nan")
    p = law.heights.size
    m = p * (samples / law.thresholds[-1]) ** (1 / (2 * decay))
    squares = np.arange(1.0, p + 1) ** (-2 * decay)
    # Z² m^(1 - 2 gamma) [1 / (2 gamma - 1) + 2 - 1 / (2 gamma + 1)], whose first term is the loss of the
    # unrecovered features   (sequential 31; arXiv:2605.14567, Theorem 3.2)
    bracket = 1 / (2 * decay - 1) + 2 - 1 / (2 * decay + 1)
    error = float(m ** (1 - 2 * decay) * bracket / squares.sum())
    return error if error <= 1 else float("nan")  # above 1 too few features are recovered


PASSES = 15
"""Number of passes of the published power iteration."""


def bulk_values(moments: FiniteSizeMoments, theory: SequentialPrediction, count: int) -> np.ndarray:
    """Eigenvalues of the bulk, ascending, drawn from the population operator plus Gaussian noise."""
    rng, size, n = random_stream("sequential-recovery", "bulk"), 400, float(theory.samples)
    background = moments.law.background
    at = background.at(n) if background else None
    variance = theory.noise_scale**2 + (at.variance if at else 0.0)
    noise = rng.standard_normal((size, size)) * np.sqrt(variance / (2 * size))
    atoms = np.zeros(size)
    if at is not None:
        atoms = np.quantile(at.atoms, (np.arange(size) + 0.5) / size)
    values = np.linalg.eigvalsh(noise + noise.T + np.diag(atoms))
    # The ends are moved to the predicted edges.
    lower, upper = theory.bulk_edges
    values = lower + (values - values[0]) * (upper - lower) / (values[-1] - values[0])
    return np.quantile(values, np.linspace(0, 1, count))


def published_overlaps(
    moments: FiniteSizeMoments, theory: SequentialPrediction, *, iterated: bool
) -> np.ndarray:
    """Squared overlap of each feature with the span of the returned directions, (p,)."""
    overlap, places = theory.squared_overlap, theory.eigenvalues
    p, found = overlap.size, theory.recovered
    bulk = bulk_values(moments, theory, moments.n_features - int(found.sum()))
    values = np.concatenate([places[found], bulk])
    if not iterated:
        # The p eigenvalues of largest modulus; an unrecovered feature stays at the end of its own side.
        least = np.sort(np.abs(values))[-p]
        kept = np.abs(places) >= least * np.where(found, 1, 1 - 1e-6)
        return np.where(kept, overlap, p / moments.n_features)
    # Components of the features along the eigenvectors: c_i on its own, the rest along the bulk, with
    # the weights 1 / (z_i - z)² of the first order of the expansion (sequential 28).
    rng = random_stream("sequential-recovery", "power iteration")
    features = np.zeros((values.size, p))
    own = np.flatnonzero(found)
    features[np.arange(own.size), own] = np.sqrt(overlap[own])
    distance = np.maximum(np.abs(places - bulk[:, None]), 0.05 * np.ptp(bulk))
    rest = rng.standard_normal((bulk.size, p)) / np.where(found, distance, 1.0)
    rest *= np.sqrt(np.where(found, 1 - overlap, 1.0)) / np.linalg.norm(rest, axis=0)
    features[own.size :] = rest
    # The span of the first p of p + 10 orthonormalised vectors is that of C^15 G for p random vectors G
    # (sequential 32).
    gains = (values / np.abs(values).max()) ** PASSES
    total = np.zeros(p)
    draws = 20
    for _ in range(draws):
        span = np.linalg.qr(gains[:, None] * rng.standard_normal((values.size, p)))[0]
        total += np.sum((span.T @ features) ** 2, axis=0) / draws
    return total


def published_error(
    moments: FiniteSizeMoments, theory: SequentialPrediction, overlap: np.ndarray
) -> float:
    """Normalised error of a least-squares second layer on directions with these overlaps."""
    errors = [
        fit_last_layer(
            draw.learned(overlap),
            draw.labels,
            readout=not moments.linear,
            rows=fresh_rows(float(theory.samples)),
            guess=moments.law.heights * overlap,
        ).normalised_mse
        for draw in moments.latent
    ]
    return float(np.mean(errors))
