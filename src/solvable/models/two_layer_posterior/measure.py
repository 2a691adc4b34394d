"""One replicate of `curse-of-detail`: networks drawn from their posterior, and their alignment."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
from solvable.models.two_layer_posterior.observer import OBSERVED, AlignmentObserver, Observer
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
    posterior, seen, states = _start(parameters, target, X, y.astype(np.float32), rng)
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


def _start(
    parameters: CurseParameters,
    target: HermiteTarget | ParityTarget | AttentionTarget,
    X: np.ndarray,
    y: np.ndarray,
    rng: np.random.Generator,
) -> tuple[Sampled, AlignmentObserver, np.ndarray]:
    """Return the posterior of the networks, their observer, and the states from which they start."""
    p, d = parameters, parameters.dimension
    scale = 1 / sqrt(p.last_width * readout_scale(p.readout, p.last_width))
    posterior: Sampled
    seen: AlignmentObserver
    plant: Callable[[np.ndarray], np.ndarray]
    if isinstance(target, AttentionTarget):
        posterior = heads = AttentionPosterior(X, y, p.kappa)
        seen = AttentionObserver(p, target, heads, rng)
        shape, plant = (p.heads, d * (d + 1)), partial(plant_heads, p)
    elif isinstance(target, ParityTarget):
        posterior = neurons = Posterior(X, y, p.kappa, scale, p.activation)
        seen = ParityObserver(p, target, neurons, rng)
        shape, plant = (p.width, d + 1), partial(plant_carriers, p)
    elif p.second_width:
        posterior = deep = DeepPosterior(
            X, y, (p.width, p.second_width), p.kappa, scale, p.activation
        )
        seen = layers = DeepObserver(p, target, deep, rng)
        shape, plant = (1, deep.size), partial(plant_second_layer, layers)
    else:
        posterior = neurons = Posterior(X, y, p.kappa, scale, p.activation)
        seen = Observer(p, target, neurons, rng)
        shape, plant = (p.width, d + 1), partial(planted, p, target, scale=scale)
    states = rng.standard_normal((p.networks, *shape), dtype=np.float32)
    if p.start != "prior":
        states[-1] = plant(states[-1])
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
