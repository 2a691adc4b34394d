"""Layers above the first, which replicates share, and the rotated features that they define.

A dense last layer is diagonal in the rotated features u = V^T h (compositional 3). For Gaussian h the
features u are Gaussian too, so the theory of sequential feature recovery applies. With more layers, V
is the eigenbasis of E[T h h^T], where T is the mapped label (compositional 9).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidData
from solvable.models.compositional.parameters import CompositionalParameters
from solvable.models.compositional.target import CompositionalTarget, quadratic_forms
from solvable.operators import apply_label_map


@dataclass(frozen=True)
class SharedUpperLayers(CompositionalTarget):
    """Target with the seed ``upper_seed`` for the layers above the first."""

    # Replicates then differ in the first layer alone, so overlaps of each rotated feature can be
    # averaged.

    upper_seed: int = 0

    @cached_property
    def _upper(self) -> CompositionalTarget:
        values = {field.name: getattr(self, field.name) for field in fields(CompositionalTarget)}
        return CompositionalTarget(**(values | {"seed": self.upper_seed}))

    @cached_property
    def hidden_layers(self) -> tuple[np.ndarray, ...]:
        """Quadratic layers between the first and the last layer."""
        return self._upper.hidden_layers

    @cached_property
    def matrix(self) -> np.ndarray:
        """Matrix of the last quadratic layer."""
        return self._upper.matrix


def make_target(parameters: CompositionalParameters, seed: int) -> SharedUpperLayers:
    """Target for a seed that determines the first layer; other layers do not depend on the seed."""
    return SharedUpperLayers(
        dimension=parameters.dimension,
        degree=parameters.degree,
        features=parameters.widths,
        second_layer=parameters.second_layer,
        decay=parameters.decay,
        beta=parameters.beta,
        readout=parameters.readout,
        first_layer=cast("Any", parameters.first_layer),
        width=parameters.width,
        seed=seed,
        upper_seed=parameters.teacher,
    )


def draw_target(parameters: CompositionalParameters, rng: np.random.Generator) -> SharedUpperLayers:
    """Target of one replicate, drawn from the stream before anything else."""
    return make_target(parameters.equivalent, int(rng.integers(2**31)))


def draw_teacher(
    parameters: CompositionalParameters, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Layers of one replicate's target, stored with a study."""
    target = draw_target(parameters, rng)
    arrays = {"directions": target.directions, "matrix": target.matrix}
    return arrays | {f"layer_{k}": layer for k, layer in enumerate(target.hidden_layers, start=2)}


@dataclass(frozen=True)
class RotatedLayer:
    """Eigendecomposition of the symmetric layer B, with eigenvalues in descending modulus."""

    weights: np.ndarray  # eigenvalues divided by |B|_F, shape (p,); their squares sum to 1
    rotation: np.ndarray  # eigenvectors v_k, shape (p, p); rotated features are v_k^T h
    scale: float  # Frobenius norm of B


def rotate_layer(matrix: np.ndarray) -> RotatedLayer:
    """Diagonalise a symmetric quadratic layer."""
    B = np.asarray(matrix, dtype=float)
    if B.ndim != 2 or B.shape[0] != B.shape[1] or not np.isfinite(B).all():
        raise InvalidData(f"matrix has shape {B.shape}; allowed: a finite square matrix (p, p).")
    scale = float(np.linalg.norm(B))
    if scale == 0 or not np.allclose(B, B.T, rtol=0, atol=1e-10 * scale):
        raise InvalidData(
            "the matrix is zero or not symmetric; allowed: a symmetric matrix other than zero."
        )
    values, vectors = np.linalg.eigh(B)
    # A stable sort of rounded moduli gives the same order on every machine.
    order = np.argsort(-np.abs(values).round(12), kind="stable")
    return RotatedLayer(values[order] / scale, vectors[:, order], scale)


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
    # The layers above the first do not depend on the dimension.
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
    draws = 400_000
    latent = random_stream("compositional-target", "basis").standard_normal((draws, widths[0]))
    last = target.upper_representation(latent, len(widths))
    labels = target.readout_function(quadratic_forms(last, target.matrix[None])[:, 0])
    T = apply_label_map(labels, cast("Any", label_map))
    # moment E[T h h^T] of the mapped label   (compositional 9)
    moment = (latent * T[:, None]).T @ latent / draws
    return rotate_layer((moment + moment.T) / 2)


def rotated_basis(parameters: CompositionalParameters) -> RotatedLayer:
    """Basis of the rotated latent features that the label identifies, strongest first."""
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
    """Orthonormal directions of the rotated features, shape (D, p)."""
    # The closest orthonormal directions replace the directions of the target.
    left, _, right = np.linalg.svd(target.directions, full_matrices=False)
    return np.asarray(left @ (right @ basis.rotation))


def rotated_hidden(parameters: CompositionalParameters) -> np.ndarray:
    """First hidden layer, expressed in the basis of the rotated features."""
    basis = rotated_basis(parameters).rotation
    hidden = make_target(parameters, 0).hidden_layers[0]
    return np.asarray(np.einsum("ak,jab,bl->jkl", basis, hidden, basis))
