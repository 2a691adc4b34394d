"""Targets of a probe: samples, the target without noise, and its feature functions."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from solvable.errors import InvalidParameter, unknown_choice
from solvable.frame import registry
from solvable.frame.parameters import Parameters
from solvable.models.compositional.upper_layers import draw_target
from solvable.models.multi_index.target import MultiIndexTarget
from solvable.models.quadratic.network.target import QuadraticTarget
from solvable.models.sequential.target import make_target
from solvable.paths import error_line
from solvable.probes.named_objects import imported

MOST_FEATURES = 8
"""Largest number of features that have a row of their own; the others share one."""

REFUSED = {
    "boltzmann-machine": "its data have no label",
    "matrix-sensing": "its label is a function of a sensing matrix, whose entries are the inputs of a "
    "quadratic network at best",
    "bilinear-sequences": "its label has no parts that a row of inputs shows one by one",
    "late-interaction": "its label is a ranking",
    "attention-indexed": "its data are drawn in its measurement, without a target object",
    "single-head-attention": "its data are drawn in its measurement, without a target object",
    "neural-lofi": "its label is a class mean, not a function of the inputs",
    "emergence-in-sgd": "its features appear in training time, not with the number of samples",
}
"""Systems that cannot be probed, and why."""


class Subject(Protocol):
    """Target of a probe; an own target is a class with these methods and, optionally, a seed.

    It may have an array `directions`, shape (d, p), that spans what the target depends on.
    """

    def sample(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw n inputs, shape (n, d), and their labels, shape (n,)."""

    def clean(self, X: np.ndarray) -> np.ndarray:
        """Return the target without noise, shape (n,)."""

    def parts(self, X: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
        """Return the names of the feature functions and their values, shape (n, p)."""


@dataclass(frozen=True)
class Target:
    """A Subject made of its three functions."""

    sample: Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray]]
    clean: Callable[[np.ndarray], np.ndarray]
    parts: Callable[[np.ndarray], tuple[tuple[str, ...], np.ndarray]]
    directions: np.ndarray | None = None  # span of what the target depends on, shape (d, p)


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"feature {k}" for k in range(1, count + 1))


def _sequential(parameters: Any, seed: int) -> Subject:
    target = make_target(parameters, seed)
    if target.degree == 3 and target.inputs == "hermite":
        raise InvalidParameter(
            "degree is 3, whose features overlap in lower degrees; allowed for a probe: degree 1 or 2."
        )
    names = _numbered(target.features)

    def features(X: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
        # f_k = lambda_k (h_k² - 1) / sqrt(2)   (probe 6)
        whole = target.weights * (target.latent(X) ** 2 - 1) / np.sqrt(2)
        if target.inputs == "gaussian" or target.degree == 1:
            return names, whole
        # Degree 2: f_k has the part sqrt(2) lambda_k (x^T M_k² x - tr M_k²) of degree 2   (probe 7)
        low = np.empty_like(whole)
        for k, matrix in enumerate(target.symmetric_matrices()):
            low[:, k] = np.sum((X @ matrix) ** 2, axis=1) - np.sum(matrix**2)
        low *= np.sqrt(2) * target.weights
        return (*names, "low degree"), np.column_stack([whole - low, low.sum(1)])

    linear = target.inputs == "gaussian" or target.degree == 1
    return Target(
        target.sample,
        lambda X: target.label(target.index(X)),
        features,
        target.directions if linear else None,
    )


def _multi_index(parameters: Any, seed: int) -> Subject:
    target = MultiIndexTarget(parameters.dimension, parameters.channel, seed)
    channel = target.channel

    def features(X: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
        # f_k = a_k sigma_k(<w_k, x>)   (probe 8)
        z = (X @ target.directions).T
        rows = zip(channel.links, channel.amplitudes, z, strict=True)
        return _gathered(np.stack([a * link(column) for link, a, column in rows], axis=1))

    return Target(target.sample, target.clean, features, target.directions)


def _gathered(values: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """Give the first features a row each, and one to the sum of the others."""
    p = values.shape[1]
    if p <= MOST_FEATURES:
        return _numbered(p), values
    last = values[:, MOST_FEATURES:].sum(1)
    return (*_numbered(MOST_FEATURES), f"other {p - MOST_FEATURES} features"), np.column_stack(
        [values[:, :MOST_FEATURES], last]
    )


def quadratic_target(parameters: Any, seed: int) -> Any:
    """Return the target of a quadratic network."""
    return QuadraticTarget(
        parameters.dimension, parameters.target, parameters.width_ratio, parameters.exponent,
        parameters.noise, seed,
    )  # fmt: skip


def _quadratic(parameters: Any, seed: int) -> Subject:
    target = quadratic_target(parameters, seed)
    strengths = target.strengths[: target.factor.shape[1]]

    def features(X: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
        # f_k = s_k (<v_k, x>² - 1) / sqrt(d)   (probe 9)
        values = ((X @ target.factor) ** 2 - strengths) / np.sqrt(target.dimension)
        if parameters.target == "power-law":
            return _gathered(values)
        # A random network has no single features: four bands of equal variance, the strongest first.
        place = np.minimum(4 * (np.cumsum(strengths**2) - 1e-12) / np.sum(strengths**2), 3.99)
        bands = [np.flatnonzero(place.astype(int) == band) for band in range(4)]
        bands = [band for band in bands if band.size]
        names = tuple(f"features {band[0] + 1} to {band[-1] + 1}" for band in bands)
        return names, np.stack([values[:, band].sum(1) for band in bands], axis=1)

    proper = target.factor.shape[1] < target.dimension
    return Target(target.sample, target.signal, features, target.factor if proper else None)


def _compositional(parameters: Any, seed: int) -> Subject:
    if parameters.layers != 3 or parameters.degree == 3 or parameters.first_layer == "gaussian":
        raise InvalidParameter(
            f"layers is {parameters.layers}, degree is {parameters.degree} and first_layer is "
            f"{parameters.first_layer!r}; allowed for a probe: layers=3, degree 1 or 2, and another "
            "first layer than gaussian."
        )
    target = draw_target(parameters, np.random.default_rng(seed))
    b, vectors = np.linalg.eigh(target.matrix)
    order = np.argsort(-np.abs(b))

    def features(X: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
        # f_k = b_k (u_k² - 1), u_k = <A v_k, F>, B = sum_k b_k v_k v_k^T   (probe 10)
        return _gathered((b * ((target.latent(X) @ vectors) ** 2 - 1))[:, order])

    directions = target.latent(np.eye(parameters.dimension)) if parameters.degree == 1 else None
    return Target(target.sample, lambda X: target.label(target.index(X)), features, directions)


FAMILIES: Mapping[str, Callable[[Any, int], Subject]] = {
    "sequential-recovery": _sequential,
    "hierarchical-multi-index": _multi_index,
    "separable-multi-index": _multi_index,
    "single-index": _multi_index,
    "quadratic-network": _quadratic,
    "compositional-target": _compositional,
}
"""Targets whose features are functions of the inputs."""

STRINGS = "random-hierarchy"
"""Target whose features are the levels of a grammar."""

LABELS = "label-hierarchy"
"""Target with many labels, each the product of a few inputs."""

DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "sequential-recovery": {"degree": 1, "features": 4, "decay": 1.0, "label_noise": 1.0},
    "hierarchical-multi-index": {"dimension": 40, "features": 4},
    "separable-multi-index": {"dimension": 40},
    "single-index": {"dimension": 40},
    "quadratic-network": {"dimension": 20, "target": "power-law"},
    "compositional-target": {"dimension": 20, "degree": 1, "features": 4},
    "label-hierarchy": {"dimension": 12, "depth": 3, "labels": 12},
}
"""Settings where a probe differs from the defaults of the system: small, and with label noise."""


def known_targets() -> list[str]:
    """Return the names of the targets of the library that can be probed."""
    return [*FAMILIES, STRINGS, LABELS]


@lru_cache(maxsize=64)
def settings_of(target: str, settings: str) -> Parameters:
    """Return the parameters of a target of the library; `settings` is a JSON object."""
    if target not in known_targets():
        if target in REFUSED:
            raise InvalidParameter(
                f"target is {target!r}, which cannot be probed: {REFUSED[target]}; allowed: "
                f"{', '.join(known_targets())}, or module:name of an own target."
            )
        raise InvalidParameter(unknown_choice("target", target, known_targets()))
    given: dict[str, Any] = json.loads(settings)
    parameters: Parameters = registry.load(target).parameters(
        **{**DEFAULTS.get(target, {}), **given}
    )
    return parameters


def make_subject(target: str, settings: str, seed: int) -> Subject:
    """Return a target whose features are functions of the inputs, by its name or ``module:name``."""
    if ":" not in target:
        return FAMILIES[target](settings_of(target, settings), seed)
    made = imported(target, "target")
    if callable(made):
        given = json.loads(settings)
        try:
            takes_seed = "seed" in inspect.signature(made).parameters
            made = made(**given, **({"seed": seed} if takes_seed else {}))
        except Exception as error:  # a user's function may raise anything
            raise InvalidParameter(
                f"target {target!r} raised {error_line(error)}; allowed: a class or function that "
                "returns a target for the given settings."
            ) from error
    missing = [name for name in ("sample", "clean", "parts") if not hasattr(made, name)]
    if missing:
        raise InvalidParameter(
            f"target {target!r} has no method {', '.join(missing)}; allowed: an object with "
            "sample(n, rng) -> X, y; clean(X) -> y without noise; parts(X) -> names, values."
        )
    subject: Subject = made
    return subject
