"""The learner in the coordinates it has found: a few Gaussians in place of all inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.message_passing.channels import AdditiveChannel
from solvable.models.multi_index.overlaps import SpectralPrediction
from solvable.models.multi_index.readout import ReadoutName, count_features, fit_readout


@dataclass(frozen=True)
class EffectiveSample:
    """Latent coordinates, labels, and the learned coordinates of training or of fresh samples."""

    latent: np.ndarray  # z, (m, p)
    labels: np.ndarray  # (m,)
    learned: np.ndarray  # U^T x, (m, k)


def effective_sample(
    channel: AdditiveChannel,
    found: SpectralPrediction,
    rows: int,
    rng: np.random.Generator,
    *,
    weights_of: tuple[np.ndarray, np.ndarray] | None = None,
) -> EffectiveSample:
    """Draw samples as the learned directions see them; training ones if label weights are given."""
    p = channel.n_directions
    z = rng.standard_normal((rows, p))
    y = channel.sample(z, rng)
    q = found.span_overlap
    u = np.sqrt(q) * (z @ found.rotation) + np.sqrt(1 - q) * rng.standard_normal((rows, q.size))
    if weights_of is not None:
        # An eigenvector leans towards the samples it was found with: leaving sample i out,
        # <u, x_i> = lambda* / (lambda* - T_i) <u_-i, x_i> (derived: a rank-one change of D)
        T = np.interp(y, *weights_of)[:, None]
        u *= found.parameters / (found.parameters - T)
    return EffectiveSample(z, y, u)


def effective_risk(
    channel: AdditiveChannel,
    found: SpectralPrediction,
    weights_of: tuple[np.ndarray, np.ndarray],
    samples: int,
    kind: ReadoutName,
    rng: np.random.Generator,
    *,
    n_neurons: int,
    regularisation: float | str,
) -> float:
    """Excess risk of a readout that was fitted to the samples that found its directions."""
    features = count_features(kind, found.span_overlap.size, n_neurons)
    # Sums of squares of features cost rows * features^2: two thousand million at most.
    most = int(np.clip(2e9 / features**2, 4_000, 60_000))
    train = effective_sample(channel, found, min(samples, most), rng, weights_of=weights_of)
    readout = fit_readout(
        [(train.learned, train.labels)],
        found.span_overlap.size,
        kind,
        n_neurons=n_neurons,
        regularisation=regularisation,  # type: ignore[arg-type]
        rng=rng,
    )
    test = effective_sample(channel, found, 40_000, rng)
    risk = float(np.mean((channel.clean(test.latent) - readout(test.learned)) ** 2))
    if samples > most:
        # Fewer draws than samples: what that adds to the variance of the fit is taken off,
        # (residual variance) * (degrees of freedom) * (1 / draws - 1 / samples).
        freedom = readout.degrees_of_freedom
        risk -= (risk + channel.noise) * freedom * (1 / most - 1 / samples)
    return max(risk, 0.0)
