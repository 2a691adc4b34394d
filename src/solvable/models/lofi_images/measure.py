"""One replicate of networks on images: one split, all methods fitted and tested on it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import NoFeatureFound
from solvable.fitting.devices import on_device
from solvable.fitting.ridge import kernel_ridge
from solvable.frame.points import Metrics
from solvable.models.lofi_images.convolution import convolutional
from solvable.models.lofi_images.emerging import emerged
from solvable.models.lofi_images.images import (
    GRAM_SAMPLES,
    images,
    lifted_kernel,
    residual_dimensions,
)
from solvable.models.lofi_images.parameters import (
    ALIGNED_DIRECTIONS,
    LAYER_STEPS,
    TRAINED_STEPS,
    USUAL_DIRECTIONS,
    NeuralLoFiImagesParameters,
)
from solvable.networks.backlofi import BackLoFiClassifier
from solvable.networks.blocks import Block, network_blocks
from solvable.networks.early_gradient import early_alignment
from solvable.networks.early_layers import layer_alignment
from solvable.networks.lofi import NeuralLoFiClassifier, NeuralLoFiTransformer
from solvable.operators import RandomLift

METHODS = ("linear", "rbf", "shallow", "deep", "lazy", "auto")
"""Ridge on pixels; Gaussian kernel; networks without filters, of one lift, of `depth` lifts, and of one
lift of finite width; filters that keep the directions stronger than random labels."""

PERMUTATIONS = 2
"""Number of permutations of the labels over which the null ratio is averaged, as one varies by 20 %."""

METRICS = (
    "directions", "error", "squared_error", "limit_squared_error",
    *(f"{name}_error" for name in METHODS), *(f"{name}_squared_error" for name in METHODS),
    "significant", "emerged", "null_counts", "null_ratios", "permuted_ratio", "residual_dimensions",
    "gram_deviation", "random_filters_error", "random_filters_squared_error", "patch_filters",
    "patch_shapes", "pixel_filters", "layer_strengths",
    "forward_error", "forward_squared_error",
    "first_step_alignment", "gradient_alignment", "principal_alignment", "weight_change",
    "layers_first_step", "layers_alignment", "layers_principal_alignment", "layers_change",
)  # fmt: skip
"""Names of a replicate's metrics; a metric is None if the setting does not define it."""


class _Split:
    """Training and test images of one replicate, with methods that fit and test networks."""

    def __init__(self, parameters: NeuralLoFiImagesParameters, rng: np.random.Generator) -> None:
        X, digits = images(parameters.data)
        order = rng.permutation(len(X))
        n = parameters.samples
        train, test = order[:n], order[n : n + parameters.tested]
        self.ten = parameters.task == "ten-class"
        y = digits if self.ten else digits % 2
        self.X, self.y = X[train], y[train]
        self.X_test, self.y_test = X[test], y[test]
        self.seed = int(rng.integers(2**31))

    def targets(self, y: np.ndarray) -> np.ndarray:
        """Columns of target values to which the readout is fitted."""
        return np.eye(10)[y] if self.ten else np.where(y == 1, 1.0, -1.0)[:, None]

    def judged(self, outputs: np.ndarray) -> tuple[float, float]:
        """Error rate and mean squared error (summed over columns) of outputs on the test images."""
        outputs = outputs.reshape(len(self.y_test), -1)
        chosen = np.argmax(outputs, axis=1) if self.ten else (outputs[:, 0] > 0).astype(int)
        squared = np.sum((outputs - self.targets(self.y_test)) ** 2, axis=1)
        return float(np.mean(chosen != self.y_test)), float(np.mean(squared))

    def fitted(
        self, blocks: Sequence[Block], penalty: float | Literal["leave-one-out"] = "leave-one-out"
    ) -> NeuralLoFiClassifier:
        """Build a network of blocks, fitted on the training images."""
        model = NeuralLoFiClassifier(
            blocks, scaling="none", regularisation=penalty, random_state=self.seed
        )
        return model.fit(on_device(self.X), self.y)

    def network(self, blocks: Sequence[Block]) -> tuple[float, float]:
        """Fit a network of blocks and return its test errors."""
        return self.judged(self.fitted(blocks).decision_function(self.X_test))

    def gaussian_kernel(self) -> tuple[float, float]:
        """Test errors of Gaussian-kernel ridge regression; leave-one-out chooses length and penalty."""
        Y = self.targets(self.y)
        distances = _squared_distances(self.X, self.X)
        unit = float(np.median(distances[np.triu_indices(len(self.X), 1)]))
        # Candidate inverse squared lengths, in units of the inverse median squared distance.
        fits = {
            factor: kernel_ridge(np.exp(-factor / unit * distances), Y)
            for factor in (0.5, 1.0, 2.0, 4.0)
        }
        best = min(fits, key=lambda factor: fits[factor].criterion)
        cross = np.exp(-best / unit * _squared_distances(self.X_test, self.X))
        return self.judged(cross @ fits[best].coefficients + fits[best].intercept)


def _squared_distances(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    squares = np.sum(left**2, axis=1)[:, None] + np.sum(right**2, axis=1)[None, :]
    return np.asarray(np.maximum(squares - 2 * left @ right.T, 0.0))


def measure(parameters: NeuralLoFiImagesParameters, rng: np.random.Generator) -> Metrics:
    """Fit all methods of one replicate and return the metrics."""
    split = _Split(parameters, rng)
    metrics: Metrics = dict.fromkeys(METRICS)
    metrics["directions"] = [float(k) for k in parameters.kept]
    if parameters.coupling != "none":
        return metrics | _coupled(parameters, split)
    if parameters.patch:
        return metrics | convolutional(parameters, split)
    if parameters.width:
        return metrics | _finite(parameters, split)
    metrics |= _filtered(parameters, split, math.inf)
    if parameters.second_directions:
        return metrics  # cells of a map need no other method
    if not split.ten:
        metrics |= _trained(parameters, split)
        if parameters.trains_two_layers:
            metrics |= _layers(parameters, split)
    return metrics | _others(parameters, split) | _strengths(parameters, split)


def _coupled(parameters: NeuralLoFiImagesParameters, split: _Split) -> Metrics:
    """Test errors of filters coupled backwards, and of the same network with forward filters."""
    metrics: Metrics = {}
    for name, passes in (("", 4), ("forward_", 0)):
        model = BackLoFiClassifier(
            parameters.coupling,  # type: ignore[arg-type]
            depth=parameters.filters + 1, reduce=parameters.kept[0], width=parameters.width,
            activation=parameters.activation, n_passes=passes, scaling="none",
            random_state=split.seed,
        ).fit(split.X, split.y)  # fmt: skip
        error, squared = split.judged(model.decision_function(split.X_test))
        values: dict[str, Any] = {"error": error, "squared_error": squared}
        metrics |= {f"{name}{kind}": value if name else [value] for kind, value in values.items()}
    return metrics


def _blocks(parameters: NeuralLoFiImagesParameters, k: int | str, width: float) -> list[Block]:
    name = parameters.activation
    counts = [k] * parameters.filters
    if parameters.second_directions:
        counts[1] = parameters.second_directions
    filters = [Block(count, width, name) for count in counts]  # type: ignore[arg-type]
    return [Block(None, width, name), *filters]


def _filtered(parameters: NeuralLoFiImagesParameters, split: _Split, width: float) -> Metrics:
    """Test errors of networks with filters, for each number of kept directions."""
    penalty: float | Literal["leave-one-out"] = parameters.penalty or "leave-one-out"
    strengths: list[float | None] = []
    errors = []
    for k in parameters.kept:
        network = split.fitted(_blocks(parameters, k, width), penalty)
        errors.append(split.judged(network.decision_function(split.X_test)))
        if k in (USUAL_DIRECTIONS, parameters.kept[-1]) and not strengths:
            # moduli of the eigenvalues of each filter over its largest, filter after filter
            moduli = [np.abs(report.eigenvalues) for report in network.filters_]
            strengths = [float(value) for row in moduli for value in row / row.max()]
    rates, squares = (list(column) for column in zip(*errors, strict=True))
    return {"error": rates, "squared_error": squares, "layer_strengths": strengths}


def _named(prefix: str, errors: tuple[float, float]) -> Metrics:
    return {f"{prefix}_error": errors[0], f"{prefix}_squared_error": errors[1]}


def _finite(parameters: NeuralLoFiImagesParameters, split: _Split) -> Metrics:
    """Test errors of networks with finite width, with infinite width, and of random features alone."""
    width, name = parameters.width, parameters.activation
    return {
        **_filtered(parameters, split, width),
        "limit_squared_error": _filtered(parameters, split, math.inf)["squared_error"],
        **_named("lazy", split.network(network_blocks(1, width=width, activation=name))),
        "gram_deviation": _gram_deviation(split.X[:GRAM_SAMPLES], width, name, split.seed),
    }


def _gram_deviation(X: np.ndarray, width: int, activation: str, seed: int) -> float:
    """Relative root mean square distance of Gram matrices of random features from their kernel."""
    kernel, scale = lifted_kernel(X, activation)
    squares = []
    # Average over 16 lifts: one direction dominates a kernel of images, so one distance fluctuates.
    for lift in range(16):
        Z = RandomLift(X.shape[1], width, activation, scale, seed + lift).transform(X)
        squares.append(np.sum((Z @ Z.T - kernel) ** 2))
    return float(np.sqrt(np.mean(squares)) / np.linalg.norm(kernel))


def _others(parameters: NeuralLoFiImagesParameters, split: _Split) -> Metrics:
    """Test errors of methods without filters, and of filters that choose their number of directions."""
    name = parameters.activation
    chosen = split.fitted(_blocks(parameters, "auto", math.inf))
    report = chosen.filters_[0]
    assert report.n_significant is not None  # "auto" compares every direction with random labels
    # With many classes, use the class with the largest ratio.
    ratios = np.nanmax(report.null_ratios, axis=0)
    known = np.isfinite(ratios)
    return {
        **_named("linear", split.network([Block(None, None)])),
        **_named("rbf", split.gaussian_kernel()),
        **_named("shallow", split.network(network_blocks(1, activation=name))),
        **_named("deep", split.network(network_blocks(parameters.depth, activation=name))),
        **_named("auto", split.judged(chosen.decision_function(split.X_test))),
        "significant": float(report.n_significant),
        "null_counts": [float(count) for count in report.null_counts],
        "null_ratios": [float(ratio) for ratio in ratios],
        "emerged": emerged(report.null_counts[known], ratios[known]),
    }


def _trained(parameters: NeuralLoFiImagesParameters, split: _Split) -> Metrics:
    """Overlaps of the first steps of a two-layer network of 1,000 neurons with the filter (lofi 27)."""
    found = early_alignment(
        split.X,
        split.targets(split.y)[:, 0],
        width=1_000,
        activation=parameters.activation,
        steps=TRAINED_STEPS,
        n_directions=ALIGNED_DIRECTIONS,
        seed=split.seed,
    )
    return {
        "first_step_alignment": [float(found.filter_overlap[0]), float(found.principal_overlap[0])],
        "gradient_alignment": found.filter_overlap.tolist(),
        "principal_alignment": found.principal_overlap.tolist(),
        "weight_change": found.relative_change.tolist(),
    }


def _layers(parameters: NeuralLoFiImagesParameters, split: _Split) -> Metrics:
    """Overlaps of the first steps of two hidden layers of 1,000 neurons with the filter of each."""
    found = layer_alignment(
        split.X.astype(np.float32),
        split.targets(split.y)[:, 0],
        activation=parameters.activation,
        steps=LAYER_STEPS,
        n_directions=ALIGNED_DIRECTIONS,
        seed=split.seed,
    )
    first = np.stack([found.filter_overlap[:, 0], found.principal_overlap[:, 0]], axis=1)
    return {
        "layers_first_step": first.ravel().tolist(),
        "layers_alignment": found.filter_overlap.ravel().tolist(),
        "layers_principal_alignment": found.principal_overlap.ravel().tolist(),
        "layers_change": found.relative_change.ravel().tolist(),
    }


def _strengths(parameters: NeuralLoFiImagesParameters, split: _Split) -> Metrics:
    """Mean null ratio of permuted labels (lofi 29), and residual effective dimensions of the kernel."""
    blocks = [Block(None, math.inf, parameters.activation), Block("auto", None)]
    stream, ratios = random_stream(split.seed, "permuted labels"), []
    with warnings.catch_warnings():
        # No direction is significant with permuted labels, as expected.
        warnings.simplefilter("ignore", NoFeatureFound)
        for _ in range(PERMUTATIONS):
            model = NeuralLoFiTransformer(blocks, scaling="none", random_state=split.seed)
            model.fit(split.X, stream.permutation(split.y))
            ratios.append(np.nanmean(model.filters_[0].null_ratios[:, 0]))
    return {
        "permuted_ratio": float(np.mean(ratios)),
        "residual_dimensions": residual_dimensions(split.X, parameters.activation, parameters.kept),
    }
