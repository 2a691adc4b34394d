"""One replicate of networks on images: split, fit all, judge all by the same unseen images."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from solvable.arrays import random_stream
from solvable.frame.points import Metrics
from solvable.operators import RandomLift, dual_kernel

if TYPE_CHECKING:
    from solvable.models.lofi_images.system import NeuralLoFiImagesParameters

METHODS = ("linear", "rbf", "shallow", "deep", "lazy", "auto")
"""Ridge on pixels; Gaussian kernel; networks without filters, of one lift and of `depth`, and of one
lift of finite width; filters that keep what stands out of meaningless labels."""

METRICS = (
    "directions",
    "error",
    "squared_error",
    "limit_squared_error",
    *(f"{name}_error" for name in METHODS),
    *(f"{name}_squared_error" for name in METHODS),
    "significant",
    "null_counts",
    "null_ratios",
    "permuted_ratio",
    "residual_dimensions",
    "gram_deviation",
)
"""Everything that a replicate may measure; None where a setting has no such thing."""

RBF_FACTORS = (0.5, 1.0, 2.0, 4.0)
"""Inverse squared lengths of the Gaussian kernel, over the median squared distance."""

GRAM_SAMPLES = 200
"""Images between which kernels of finite and infinite width are compared."""

GRAM_LIFTS = 16
"""Draws of the weights behind that comparison."""


@lru_cache(maxsize=2)
def images(data: str) -> tuple[np.ndarray, np.ndarray]:
    """Pixels, standardised all together, and digits of a data set."""
    from solvable.data import load

    found = load(data)
    X = np.asarray((found.X - found.X.mean()) / found.X.std())
    X.setflags(write=False)
    return X, np.asarray(found.y).astype(int)


class _Split:
    """Training and test images of one replicate, and how a fitted method is judged by them."""

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
        """Columns that a readout is fitted to."""
        return np.eye(10)[y] if self.ten else np.where(y == 1, 1.0, -1.0)[:, None]

    def judged(self, outputs: np.ndarray) -> tuple[float, float]:
        """Error rate and mean squared error, summed over columns, of outputs on the test images."""
        outputs = outputs.reshape(len(self.y_test), -1)
        chosen = np.argmax(outputs, axis=1) if self.ten else (outputs[:, 0] > 0).astype(int)
        squared = np.sum((outputs - self.targets(self.y_test)) ** 2, axis=1)
        return float(np.mean(chosen != self.y_test)), float(np.mean(squared))

    def network(self, blocks: list[Any]) -> tuple[Any, tuple[float, float]]:
        """Fitted network of blocks, and how it is judged."""
        from solvable.networks.lofi import NeuralLoFiClassifier

        model = NeuralLoFiClassifier(blocks, scaling="none", random_state=self.seed)
        model.fit(self.X, self.y)
        return model, self.judged(model.decision_function(self.X_test))

    def gaussian_kernel(self) -> tuple[float, float]:
        """Ridge with a Gaussian kernel, its length and penalty by leave-one-out."""
        from solvable.fitting.ridge import kernel_ridge

        Y = self.targets(self.y)
        distances = _squared_distances(self.X, self.X)
        unit = float(np.median(distances[np.triu_indices(len(self.X), 1)]))
        fits = {one: kernel_ridge(np.exp(-one / unit * distances), Y) for one in RBF_FACTORS}
        best = min(fits, key=lambda one: fits[one].criterion)
        cross = np.exp(-best / unit * _squared_distances(self.X_test, self.X))
        return self.judged(cross @ fits[best].coefficients + fits[best].intercept)


def _squared_distances(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    squares = np.sum(left**2, axis=1)[:, None] + np.sum(right**2, axis=1)[None, :]
    return np.asarray(np.maximum(squares - 2 * left @ right.T, 0.0))


def measure(parameters: NeuralLoFiImagesParameters, rng: np.random.Generator) -> Metrics:
    """Metrics of one replicate."""
    split = _Split(parameters, rng)
    found: Metrics = dict.fromkeys(METRICS)
    found["directions"] = [float(k) for k in parameters.kept]
    if parameters.width:
        return found | _finite(parameters, split)
    errors = [split.network(_blocks(parameters, k, math.inf))[1] for k in parameters.kept]
    found |= _listed("", errors)
    return found | _others(parameters, split) | _strengths(parameters, split)


def _blocks(parameters: NeuralLoFiImagesParameters, k: int | str, width: float) -> list[Any]:
    from solvable.networks.blocks import Block

    name = parameters.activation
    return [
        Block(None, width, name),
        *(Block(k, width, name) for _ in range(parameters.filters)),  # type: ignore[arg-type]
    ]


def _listed(prefix: str, errors: list[tuple[float, float]]) -> Metrics:
    rates: list[float | None] = [one[0] for one in errors]
    squares: list[float | None] = [one[1] for one in errors]
    return {f"{prefix}error": rates, f"{prefix}squared_error": squares}


def _single(prefix: str, errors: tuple[float, float]) -> Metrics:
    return {f"{prefix}_error": errors[0], f"{prefix}_squared_error": errors[1]}


def _finite(parameters: NeuralLoFiImagesParameters, split: _Split) -> Metrics:
    """Networks of finite width beside their limit and beside a lazy one."""
    from solvable.networks.blocks import network_blocks

    width = parameters.width
    errors = [split.network(_blocks(parameters, k, width))[1] for k in parameters.kept]
    limits = [split.network(_blocks(parameters, k, math.inf))[1] for k in parameters.kept]
    lazy = split.network(network_blocks(1, width=width, activation=parameters.activation))[1]
    X = split.X[:GRAM_SAMPLES]
    return {
        **_listed("", errors),
        "limit_squared_error": _listed("", limits)["squared_error"],
        **_single("lazy", lazy),
        "gram_deviation": _gram_deviation(X, width, parameters.activation, split.seed),
    }


def _gram_deviation(X: np.ndarray, width: int, activation: str, seed: int) -> float:
    """Root mean square distance of Gram matrices of random features from their kernel, relative.

    One direction holds most of a kernel of images, so that a single distance is hardly averaged.
    """
    inner, scale = _scaled_gram(X)
    kernel = dual_kernel(activation, inner, np.diag(inner), np.diag(inner))
    squares = []
    for lift in range(GRAM_LIFTS):
        Z = RandomLift(X.shape[1], width, activation, scale, seed + lift).transform(X)
        squares.append(np.sum((Z @ Z.T - kernel) ** 2))
    return float(np.sqrt(np.mean(squares)) / np.linalg.norm(kernel))


def _scaled_gram(X: np.ndarray) -> tuple[np.ndarray, float]:
    scale = math.sqrt(float(np.mean(np.sum(X**2, axis=1))))
    return X @ X.T / scale**2, scale


def _others(parameters: NeuralLoFiImagesParameters, split: _Split) -> Metrics:
    """What has no filter, and filters that choose their number of directions."""
    from solvable.networks.blocks import Block, network_blocks

    name = parameters.activation
    fits: dict[str, Callable[[], tuple[float, float]]] = {
        "linear": lambda: split.network([Block(None, None)])[1],
        "rbf": split.gaussian_kernel,
        "shallow": lambda: split.network(network_blocks(1, activation=name))[1],
        "deep": lambda: split.network(network_blocks(parameters.depth, activation=name))[1],
    }
    found: Metrics = {}
    for method, fit in fits.items():
        found |= _single(method, fit())
    model, errors = split.network(_blocks(parameters, "auto", math.inf))
    report = model.filters_[0]
    # Of many classes the strongest one.
    ratios = np.nanmax(report.null_ratios, axis=0)
    return found | {
        **_single("auto", errors),
        "significant": float(report.n_significant),
        "null_counts": [float(one) for one in report.null_counts],
        "null_ratios": [float(one) for one in ratios],
    }


def _strengths(parameters: NeuralLoFiImagesParameters, split: _Split) -> Metrics:
    """Strength of permuted labels over that of others, and dimensions of the kernel's spectrum."""
    import warnings

    from solvable.errors import NoFeatureFound
    from solvable.models.lofi.emergence import residual_dimension
    from solvable.networks.blocks import Block
    from solvable.networks.lofi import NeuralLoFiTransformer

    inner, _ = _scaled_gram(split.X)
    kernel = dual_kernel(parameters.activation, inner, np.diag(inner), np.diag(inner))
    spectrum = np.maximum(np.linalg.eigvalsh(kernel), 0.0)
    blocks = [Block(None, math.inf, parameters.activation), Block("auto", None)]
    permuted = random_stream(split.seed, "permuted labels").permutation(split.y)
    with warnings.catch_warnings():
        # Nothing is what should be found.
        warnings.simplefilter("ignore", NoFeatureFound)
        model = NeuralLoFiTransformer(blocks, scaling="none", random_state=split.seed)
        model.fit(split.X, permuted)
    return {
        "permuted_ratio": float(np.nanmean(model.filters_[0].null_ratios[:, 0])),
        "residual_dimensions": _at_directions(residual_dimension(spectrum), parameters),
    }


def _at_directions(
    dimensions: np.ndarray, parameters: NeuralLoFiImagesParameters
) -> list[float | None]:
    return [float(dimensions[k]) for k in parameters.kept]


def predict(parameters: NeuralLoFiImagesParameters) -> Metrics:
    """Convergence in width and dimensions, from other images than those of any replicate's draw."""
    from solvable.models.lofi.emergence import residual_dimension
    from solvable.models.lofi.width import width_convergence

    X, _ = images(parameters.data)
    stream = random_stream(0, "images for predictions", parameters.samples)
    chosen = X[stream.permutation(len(X))[: parameters.samples]]
    if parameters.width:
        chosen = chosen[:GRAM_SAMPLES]
        inner, _ = _scaled_gram(chosen)
        kernel = dual_kernel(parameters.activation, inner, np.diag(inner), np.diag(inner))
        rate = width_convergence(chosen, activation=parameters.activation).frobenius_error
        return {
            "gram_deviation": rate / math.sqrt(parameters.width) / float(np.linalg.norm(kernel))
        }
    inner, _ = _scaled_gram(chosen)
    kernel = dual_kernel(parameters.activation, inner, np.diag(inner), np.diag(inner))
    spectrum = np.maximum(np.linalg.eigvalsh(kernel), 0.0)
    return {
        "permuted_ratio": 1.0,
        "residual_dimensions": _at_directions(residual_dimension(spectrum), parameters),
    }
