"""One replicate of a compositional target: draw, fit layer by layer, score every layer."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from solvable.arrays import as_source, random_stream
from solvable.frame.points import Metrics
from solvable.models.compositional.target import CompositionalTarget

if TYPE_CHECKING:
    from solvable.models.compositional.system import CompositionalParameters
    from solvable.models.compositional.theory import RotatedLayer
    from solvable.models.sequential.learner import LayerwiseSpectralRegressor

MEMORY_BYTES = 1.5e9
"""Samples beyond this size are drawn again from their seed at each pass instead of being stored."""

HELD_BACK_ROWS = (4_000, 20_000)
"""Fewest and most fresh rows behind the last layer and the readout."""

BASIS_DRAWS = 400_000
"""Gaussian draws behind the eigenbasis of a four-layer target."""


@dataclass(frozen=True)
class SharedUpperLayers(CompositionalTarget):
    """A target whose layers above the first belong to ``upper_seed``, not to ``seed``.

    Replicates then differ in their first layer alone, and each rotated feature can be averaged.
    """

    upper_seed: int = 0

    @cached_property
    def _upper(self) -> CompositionalTarget:
        own = {one.name: getattr(self, one.name) for one in fields(CompositionalTarget)}
        return CompositionalTarget(**(own | {"seed": self.upper_seed}))

    @cached_property
    def hidden_layers(self) -> tuple[np.ndarray, ...]:
        """Quadratic layers between the first and the last."""
        return self._upper.hidden_layers

    @cached_property
    def matrix(self) -> np.ndarray:
        """The last quadratic layer."""
        return self._upper.matrix


def make_target(parameters: CompositionalParameters, seed: int) -> SharedUpperLayers:
    """Target of a seed: first layers differ between replicates, the others do not."""
    return SharedUpperLayers(
        dimension=parameters.dimension,
        degree=parameters.degree,
        features=parameters.widths,
        second_layer=parameters.second_layer,
        decay=parameters.decay,
        beta=parameters.beta,
        readout=parameters.readout,
        first_layer=parameters.first_layer,
        width=parameters.width,
        seed=seed,
        upper_seed=parameters.teacher,
    )


def draw_target(parameters: CompositionalParameters, rng: np.random.Generator) -> SharedUpperLayers:
    """Target of one replicate, the first thing that is drawn."""
    return make_target(parameters, int(rng.integers(2**31)))


@lru_cache(maxsize=32)
def _upper_basis(
    widths: tuple[int, ...],
    second_layer: str,
    decay: float,
    beta: float,
    readout: str,
    label_map: str,
    teacher: int,
) -> RotatedLayer:
    from solvable.models.compositional.theory import rotate_layer
    from solvable.operators import apply_label_map

    # Any dimension that holds the widths has the same layers above the first.
    target = CompositionalTarget(
        dimension=2 * max(widths) + 2,
        features=widths,
        second_layer=cast("Any", second_layer),
        decay=decay,
        beta=beta,
        readout=readout,
        seed=teacher,
    )
    if len(widths) == 1:
        return rotate_layer(target.matrix)
    latent = random_stream("compositional-target", "basis").standard_normal(
        (BASIS_DRAWS, widths[0])
    )
    (hidden,) = target.hidden_layers
    inner = np.einsum("na,jab,nb->nj", latent, hidden, latent, optimize=True)
    inner = (inner - np.trace(hidden, axis1=1, axis2=2)) / np.sqrt(2)
    index = np.einsum("na,ab,nb->n", inner, target.matrix, inner, optimize=True)
    labels = target.readout_function(index - np.trace(target.matrix))
    T = apply_label_map(labels, cast("Any", label_map))
    moment = (latent * T[:, None]).T @ latent / BASIS_DRAWS
    return rotate_layer((moment + moment.T) / 2)


def rotated_basis(parameters: CompositionalParameters) -> RotatedLayer:
    """Combinations of the latent features that the label tells apart, strongest first."""
    return _upper_basis(
        parameters.widths,
        parameters.second_layer,
        parameters.decay,
        parameters.beta,
        parameters.readout,
        parameters.label_map,
        parameters.teacher,
    )


def rotated_directions(target: CompositionalTarget, basis: RotatedLayer) -> np.ndarray:
    """Orthonormal directions of the rotated features, shape (D, p).

    Directions that are not orthonormal are replaced by the closest ones that are.
    """
    left, _, right = np.linalg.svd(target.directions, full_matrices=False)
    return np.asarray(left @ (right @ basis.rotation))


def fresh_rows(parameters: CompositionalParameters) -> int:
    """Rows kept for each later step, so that the first spectral step has ``samples`` of its own."""
    fewest, most = HELD_BACK_ROWS
    if len(parameters.widths) > 1:
        # The learner gives a deeper layer no more rows than the first one has.
        return min(parameters.samples, most)
    return int(np.clip(parameters.samples, fewest, most))


def measure(parameters: CompositionalParameters, rng: np.random.Generator) -> Metrics:
    """Metrics of one replicate."""
    target = draw_target(parameters, rng)
    fresh = fresh_rows(parameters)
    rows = parameters.samples + fresh * len(parameters.widths)
    X, y = _samples(target, rows, rng)
    X_test, y_test = target.sample(parameters.test_samples, rng, dtype=np.float32)
    learner = _fit(parameters, X, y, fresh, int(rng.integers(2**31)))
    error = np.mean((learner.predict(X_test) - y_test) ** 2) / y_test.var()
    last = np.linalg.eigvalsh(learner.second_layer_.quadratic)[::-1]
    return {
        **_score_layers(parameters, target, learner),
        "last_layer_eigenvalues": last.tolist(),
        "normalised_mse": float(error),
        **_kernels(parameters, X, y, X_test, y_test),
    }


def _samples(
    target: CompositionalTarget, rows: int, rng: np.random.Generator
) -> tuple[Any, np.ndarray]:
    if rows * target.input_columns * 4 > MEMORY_BYTES:
        return target.source(rows, int(rng.integers(2**31)), dtype=np.float32)
    return target.sample(rows, rng, dtype=np.float32)


def _fit(
    parameters: CompositionalParameters, X: Any, y: np.ndarray, fresh: int, seed: int
) -> LayerwiseSpectralRegressor:
    from solvable.models.sequential.learner import LayerwiseSpectralRegressor

    learner = LayerwiseSpectralRegressor(
        degree=parameters.degree,
        n_directions=parameters.widths,
        label_map=parameters.label_map,
        correction=parameters.correction,
        readout="none" if parameters.readout == "identity" else "spline",
        held_back=fresh,
        shuffle=False,
        selection="forced",
        random_state=seed,
    )
    return learner.fit(X, y)


def _score_layers(
    parameters: CompositionalParameters,
    target: CompositionalTarget,
    learner: LayerwiseSpectralRegressor,
) -> Metrics:
    """Overlaps of the learned with the true features, layer by layer."""
    from scipy.optimize import linear_sum_assignment

    basis = rotated_basis(parameters)
    alignment = learner.directions_.T @ rotated_directions(target, basis)
    squared = (alignment**2).T
    feature, vector = linear_sum_assignment(squared, maximize=True)
    eigenvalues = np.empty(target.widths[0])
    eigenvalues[feature] = learner.eigenvalues_[vector]
    found, (lower, upper) = learner.eigenvalues_, learner.bulk_edges_
    return {
        "squared_overlap": squared.sum(axis=1).tolist(),
        "subspace_overlap": float(squared.sum() / target.widths[0]),
        "inner_squared_overlap": _score_inner_layer(target, learner, alignment @ basis.rotation.T),
        "eigenvalues": eigenvalues.tolist(),
        "detected_features": float(np.sum((found > upper) | (found < lower))),
    }


def _score_inner_layer(
    target: CompositionalTarget, learner: LayerwiseSpectralRegressor, alignment: np.ndarray
) -> list[float | None] | None:
    """Share of each true feature of the second representation that lies in the learned ones."""
    if not target.hidden_layers:
        return None
    from solvable.models.compositional.latent_layers import transported

    truth = transported(target.hidden_layers[0], alignment)
    shares = np.sum((truth.T @ learner.layers_[1].directions) ** 2, axis=1)
    return cast("list[float | None]", shares.tolist())


def _kernels(
    parameters: CompositionalParameters,
    X: Any,
    y: np.ndarray,
    X_test: np.ndarray,
    y_test: np.ndarray,
) -> Metrics:
    """Error of kernel ridge regression on the rows of the first spectral step."""
    limits: dict[Literal["polynomial", "rbf"], int] = {
        "polynomial": parameters.kernel_samples,
        "rbf": parameters.kernel_samples // 2,
    }
    rows, found = parameters.samples, {}
    for name, limit in limits.items():
        error = None
        if rows <= limit and parameters.dimension >= parameters.kernel_dimension:
            from solvable.fitting.baselines import KernelRidgeBaseline

            train = next(block for _, block in as_source(X).chunks(rows))
            model = KernelRidgeBaseline(kind=name, degree=parameters.label_degree)
            residual = model.fit(train, y[:rows]).predict(X_test) - y_test
            error = float(np.mean(residual**2) / y_test.var())
        found[f"{name}_kernel_normalised_mse"] = error
    return cast("Metrics", found)
