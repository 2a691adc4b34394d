"""One replicate of `curse-of-detail`: networks drawn from their posterior, and their alignment."""

from __future__ import annotations

from math import sqrt

import numpy as np

from solvable.frame.points import Metrics
from solvable.models.two_layer_posterior.constants import specialisation
from solvable.models.two_layer_posterior.deep_langevin import DeepPosterior
from solvable.models.two_layer_posterior.deep_observer import DeepObserver, plant_second_layer
from solvable.models.two_layer_posterior.feature_kernels import measure_strengths
from solvable.models.two_layer_posterior.langevin import Posterior, Sampled, run_langevin
from solvable.models.two_layer_posterior.large_deviation import readout_scale
from solvable.models.two_layer_posterior.observer import OBSERVED, Observer
from solvable.models.two_layer_posterior.overlap import neuron_overlap
from solvable.models.two_layer_posterior.parameters import CurseParameters
from solvable.models.two_layer_posterior.target import HermiteTarget


def draw_target(parameters: CurseParameters, rng: np.random.Generator) -> HermiteTarget:
    """Draw a target with a random direction."""
    return HermiteTarget(parameters.dimension, parameters.degree, int(rng.integers(2**31)))


def draw_teacher(parameters: CurseParameters, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the direction of the target of one replicate, which a study stores."""
    return {"direction": draw_target(parameters, rng).direction}


def measure(parameters: CurseParameters, rng: np.random.Generator) -> Metrics:
    """Measure one replicate: train a network from each start, or draw a random kernel."""
    target = draw_target(parameters, rng)
    if parameters.gain:
        return measure_strengths(parameters, target, rng)
    X, y = target.sample(parameters.samples, rng, np.float32)
    chi = readout_scale(parameters.readout, parameters.last_width)
    scale = 1 / sqrt(parameters.last_width * chi)
    posterior, seen, states = (_deep if parameters.second_width else _shallow)(
        parameters, target, X, y.astype(np.float32), scale, rng
    )
    run = run_langevin(
        posterior,
        states,
        rng,
        steps=parameters.steps,
        share=parameters.step,
        every=OBSERVED,
        observe=seen,
    )
    return seen.metrics() | {
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
