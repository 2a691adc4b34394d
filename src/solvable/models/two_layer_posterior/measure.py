"""One replicate of `curse-of-detail`: networks drawn from their posterior, and their alignment."""

from __future__ import annotations

from math import sqrt

import numpy as np

from solvable.frame.points import Metrics
from solvable.models.two_layer_posterior.attention import (
    AttentionObserver,
    AttentionPosterior,
    AttentionTarget,
    plant_heads,
)
from solvable.models.two_layer_posterior.constants import specialisation
from solvable.models.two_layer_posterior.deep_langevin import DeepPosterior
from solvable.models.two_layer_posterior.deep_observer import DeepObserver, plant_second_layer
from solvable.models.two_layer_posterior.feature_kernels import draw_weights, measure_strengths
from solvable.models.two_layer_posterior.feature_norms import measure_norms
from solvable.models.two_layer_posterior.langevin import Posterior, Sampled, run_langevin
from solvable.models.two_layer_posterior.large_deviation import readout_scale
from solvable.models.two_layer_posterior.observer import OBSERVED, Observer
from solvable.models.two_layer_posterior.overlap import neuron_overlap
from solvable.models.two_layer_posterior.parameters import CurseParameters
from solvable.models.two_layer_posterior.parity import ParityObserver, ParityTarget, plant_carriers
from solvable.models.two_layer_posterior.sample_effect import effect_of_samples
from solvable.models.two_layer_posterior.target import HermiteTarget


def draw_target(
    parameters: CurseParameters, rng: np.random.Generator
) -> HermiteTarget | ParityTarget | AttentionTarget:
    """Draw a target with a random direction, or return a fixed function of the first inputs."""
    if parameters.target == "attention":
        return AttentionTarget(parameters.dimension, parameters.context)
    if parameters.target == "parity":
        return ParityTarget(parameters.dimension)
    return HermiteTarget(parameters.dimension, parameters.degree, int(rng.integers(2**31)))


def draw_teacher(parameters: CurseParameters, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the direction of the target of one replicate, which a study stores."""
    return {"direction": draw_target(parameters, rng).direction}


def measure(parameters: CurseParameters, rng: np.random.Generator) -> Metrics:
    """Measure one replicate: train a network from each start, or draw a random kernel."""
    target = draw_target(parameters, rng)
    if parameters.gain and isinstance(target, HermiteTarget):
        W = draw_weights(parameters, target, rng)
        return {
            "strengths": measure_strengths(parameters, target, W, rng),
            "norms": measure_norms(parameters, target, W, rng),
        }
    X, y = target.sample(parameters.samples, rng, np.float32)
    chi = readout_scale(parameters.readout, parameters.last_width)
    scale = 1 / sqrt(parameters.last_width * chi)
    y = y.astype(np.float32)
    posterior: Sampled
    seen: Observer | DeepObserver | ParityObserver | AttentionObserver
    if isinstance(target, AttentionTarget):
        posterior, seen, states = _attention(parameters, target, X, y, rng)
    elif isinstance(target, ParityTarget):
        posterior, seen, states = _parity(parameters, target, X, y, scale, rng)
    else:
        start = _deep if parameters.second_width else _shallow
        posterior, seen, states = start(parameters, target, X, y, scale, rng)
    run = run_langevin(
        posterior,
        states,
        rng,
        steps=parameters.steps,
        share=parameters.step,
        every=OBSERVED,
        observe=seen,
    )
    metrics = seen.metrics()
    effect = effect_of_samples(parameters, X @ target.direction)
    return metrics | {
        # control variate: the effect has mean 0, and most of the scatter of the alignment
        "adjusted_alignment": None if effect is None else seen.mean_alignment - effect,
        "training_error": float(run.errors.mean()),
        "virial": run.virial,
        "step_size": run.step,
        "step_error": run.step_error if np.isfinite(run.step_error) else None,
        "duration": run.step * (parameters.steps - parameters.steps // 2),
    }


def _shallow(
    parameters: CurseParameters,
    target: HermiteTarget,
    X: np.ndarray,
    y: np.ndarray,
    scale: float,
    rng: np.random.Generator,
) -> tuple[Sampled, Observer, np.ndarray]:
    """Return the posterior, observer and starts of networks with one hidden layer."""
    posterior = Posterior(X, y, parameters.kappa, scale, parameters.activation)
    seen = Observer(parameters, target, posterior, rng)
    shape = (parameters.networks, parameters.width, parameters.dimension + 1)
    states = rng.standard_normal(shape, dtype=np.float32)
    if parameters.start != "prior":
        states[-1] = planted(parameters, target, states[-1], scale)
    return posterior, seen, states


def _parity(
    parameters: CurseParameters,
    target: ParityTarget,
    X: np.ndarray,
    y: np.ndarray,
    scale: float,
    rng: np.random.Generator,
) -> tuple[Sampled, ParityObserver, np.ndarray]:
    """Return the posterior, observer and starts of networks that learn a parity."""
    posterior = Posterior(X, y, parameters.kappa, scale, parameters.activation)
    seen = ParityObserver(parameters, target, posterior, rng)
    shape = (parameters.networks, parameters.width, parameters.dimension + 1)
    states = rng.standard_normal(shape, dtype=np.float32)
    if parameters.start != "prior":
        states[-1] = plant_carriers(parameters, states[-1])
    return posterior, seen, states


def _attention(
    parameters: CurseParameters,
    target: AttentionTarget,
    X: np.ndarray,
    y: np.ndarray,
    rng: np.random.Generator,
) -> tuple[Sampled, AttentionObserver, np.ndarray]:
    """Return the posterior, observer and starts of blocks of attention."""
    posterior = AttentionPosterior(X, y, parameters.kappa)
    seen = AttentionObserver(parameters, target, posterior, rng)
    size = parameters.dimension * (parameters.dimension + 1)
    shape = (parameters.networks, parameters.heads, size)
    states = rng.standard_normal(shape, dtype=np.float32)
    if parameters.start != "prior":
        states[-1] = plant_heads(parameters, states[-1])
    return posterior, seen, states


def _deep(
    parameters: CurseParameters,
    target: HermiteTarget,
    X: np.ndarray,
    y: np.ndarray,
    scale: float,
    rng: np.random.Generator,
) -> tuple[Sampled, DeepObserver, np.ndarray]:
    """Return the posterior, observer and starts of networks with two hidden layers."""
    widths = (parameters.width, parameters.second_width)
    posterior = DeepPosterior(X, y, widths, parameters.kappa, scale, parameters.activation)
    seen = DeepObserver(parameters, target, posterior, rng)
    shape = (parameters.networks, 1, posterior.size)
    states = rng.standard_normal(shape, dtype=np.float32)
    if parameters.start != "prior":
        plant_second_layer(seen, states[-1:])
    return posterior, seen, states


def planted(
    parameters: CurseParameters, target: HermiteTarget, state: np.ndarray, scale: float
) -> np.ndarray:
    """Plant specialised neurons in a network of the prior, as many as in the wide limit."""
    d, width = parameters.dimension, parameters.width
    best = specialisation(parameters.activation, parameters.degree)
    if best.kind == "specialised":
        u, r, neurons = best.u, best.r, best.neurons
    else:  # diffuse or condensed: plant a few strong neurons
        u, r, neurons = 1.5, 0.3, 2.0
    chi = readout_scale(parameters.readout, width)
    count = min(width, max(1, round(0.8 * neurons * sqrt(chi * width / d))))
    overlap = float(neuron_overlap(parameters.activation, parameters.degree).value(u, r))
    planted_state = state.astype(np.float64)
    rest = planted_state[:count, :d]
    rest -= np.outer(rest @ target.direction, target.direction)
    # for even targets u and -u have the same overlap, so that one sign is enough
    planted_state[:count, :d] = sqrt(r) * rest + u * sqrt(d) * target.direction
    planted_state[:count, d] = 0.8 / (count * overlap * scale)
    return planted_state.astype(state.dtype)
