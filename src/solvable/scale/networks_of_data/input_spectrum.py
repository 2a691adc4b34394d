"""Input spectrum of a data set: covariance, and direction and degree of the target."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from solvable.arrays import random_stream
from solvable.data import Target, from_arrays
from solvable.data.dataset import Dataset
from solvable.data.stream import LabelledSource
from solvable.errors import InvalidData
from solvable.fitting.ridge import ReadoutMoments, kernel_ridge
from solvable.scale.networks_of_data.input_summary import FeatureStrength, InputSpectrum

WORK = 2e11  # largest number of multiplications for the covariance; further rows are left out
COLUMNS = 4000  # largest allowed number of columns
KERNEL_ROWS = 1500  # number of rows of the polynomial fits


def measure_inputs(
    data: Dataset | LabelledSource, *, name: str | None = None, seed: int = 0
) -> InputSpectrum:
    """Measure the spectrum of a data set's inputs and the strength of its target's direction."""
    # Takes time O(n d² + d³), and memory for O(d²) numbers and one chunk.
    stream = from_arrays(data.X, data.y) if isinstance(data, Dataset) else data
    classes = _classes(data)
    name = name or str(getattr(data, "name", "data"))
    if stream.n_columns > COLUMNS:
        raise InvalidData(
            f"{name} has {stream.n_columns:,} columns; allowed: at most {COLUMNS:,}. Resize images, or "
            "choose columns."
        )
    if stream.n_samples < 20:
        raise InvalidData(f"{name} has {stream.n_samples} rows; allowed: at least 20.")
    folds, shift, some, notes = _sums(stream, len(classes), seed)
    total = _merged(folds)
    n, covariance = total.rows, _covariance(total)
    keep = np.diag(covariance) > 1e-12 * np.trace(covariance)
    if np.count_nonzero(keep) < 2:
        raise InvalidData(f"{name} has fewer than 2 columns that vary; allowed: at least 2.")
    values = np.linalg.eigvalsh(covariance[np.ix_(keep, keep)])[::-1]
    eigenvalues = np.maximum(values, 0) / values.sum()
    top = int(np.argmax(np.diag(covariance)))
    share = float(covariance[top, top] / np.trace(covariance))
    if share > 0.5 and np.count_nonzero(keep) > 2:
        notes.append(
            f"column {_column(data, top)} has {100 * share:.0f} % of the total variance: if the model "
            "gets standardised columns, standardise them here too"
        )
    features = _features(folds, total, covariance, _labels(data, classes))
    degrees, error = _degrees(some[0] - shift, some[1], covariance)
    dropped = len(getattr(getattr(data, "preparation", None), "dropped", ()))
    return InputSpectrum(
        name, n, int(keep.sum()), eigenvalues, features, degrees, error, tuple(notes),
        (stream.n_columns, stream.n_columns + dropped),
    )  # fmt: skip


def _classes(data: Dataset | LabelledSource) -> tuple[str, ...]:
    """Labels of the classes; empty for a numerical target."""
    if isinstance(data, Dataset):
        return data.class_labels
    target = getattr(data, "target", None)
    return tuple(target.classes) if isinstance(target, Target) else ()


def _column(data: Dataset | LabelledSource, place: int) -> str:
    return repr(data.columns[place]) if isinstance(data, Dataset) else str(place)


def _labels(data: Dataset | LabelledSource, classes: tuple[str, ...]) -> list[str]:
    """Names of the outputs."""
    if classes:
        return [str(name) for name in (classes[1:] if len(classes) == 2 else classes)]
    target = getattr(data, "target", "target")
    return [target.name if isinstance(target, Target) else str(target)]


def _coded(y: np.ndarray, classes: int) -> np.ndarray:
    """Code targets as columns: one column for two classes or for numbers, else one column per class."""
    if classes > 2:
        return np.eye(classes)[y.astype(int)]
    return np.asarray(y, dtype=float)[:, None]


def _sums(
    stream: LabelledSource, classes: int, seed: int
) -> tuple[list[ReadoutMoments], np.ndarray, tuple[np.ndarray, np.ndarray], list[str]]:
    """Compute sums over fifths of the rows, the shift subtracted from all rows, and sampled rows."""
    d, n = stream.n_columns, stream.n_samples
    limit = int(max(10 * d, WORK / d**2))
    notes = []
    outputs = classes if classes > 2 else 1
    folds = [ReadoutMoments(d, outputs) for _ in range(5)]
    rng = random_stream("rows of an input spectrum", seed)
    # A file's rows may be sorted, so that all chunks are read and the same share of each is kept.
    thin = min(1.0, limit / n)
    if thin < 1:
        notes.append(f"{100 * thin:.2g} % of the {n:,} rows were drawn, which is precise enough")
    shift: np.ndarray | None = None
    some_X, some_Y = [], []
    few = min(1.0, 2 * KERNEL_ROWS / n)
    for _, block, labels in stream.chunks(4000):
        X, y = np.asarray(block), np.asarray(labels)
        if not np.isfinite(X).all() or not np.isfinite(np.asarray(y, dtype=float)).all():
            raise InvalidData(
                "a value is missing or infinite; allowed: finite numbers. Fill in missing values."
            )
        drawn = rng.random(len(X))
        shift = X.mean(axis=0, dtype=float) if shift is None else shift
        chosen = drawn < thin
        Y = _coded(y, classes)
        fold = rng.integers(0, 5, len(X))
        for k in range(5):
            rows = chosen & (fold == k)
            if rows.any():
                folds[k].add(X[rows] - shift, Y[rows])
        rows = rng.random(len(X)) < few
        some_X.append(X[rows])
        some_Y.append(Y[rows])
    assert shift is not None
    some = np.concatenate(some_X).astype(float), np.concatenate(some_Y)
    order = rng.permutation(len(some[0]))[: 2 * KERNEL_ROWS]
    return folds, shift, (some[0][order], some[1][order]), notes


def _merged(folds: list[ReadoutMoments], without: int | None = None) -> ReadoutMoments:
    total = ReadoutMoments(*folds[0].cross.shape)
    for place, part in enumerate(folds):
        if place != without:
            total.merge(part)
    return total


def _covariance(sums: ReadoutMoments) -> np.ndarray:
    """Compute the covariance of the columns from the upper triangle of summed products."""
    mean = sums.features / sums.rows
    upper = np.triu(sums.gram) / sums.rows
    return np.asarray(upper + np.triu(upper, 1).T - np.outer(mean, mean))


def _strengths(sums: ReadoutMoments, covariance: np.ndarray) -> np.ndarray:
    # lambda_0 = w^T Sigma w / (|w|² tr Sigma)   (scale 17)
    weights = sums.solve().coefficients
    along = np.einsum("ic,ij,jc->c", weights, covariance, weights, optimize=True)
    size = np.sum(weights**2, axis=0)
    least = np.finfo(float).tiny
    return np.asarray(along / np.maximum(size, least) / np.trace(covariance))


def _features(
    folds: list[ReadoutMoments], total: ReadoutMoments, covariance: np.ndarray, labels: list[str]
) -> tuple[FeatureStrength, ...]:
    """Measure how strong each output's direction is in the inputs; raise an error if no output varies."""
    n, trace = total.rows, float(np.trace(covariance))
    variance = total.powers / n - (total.targets / n) ** 2
    if (variance <= 1e-12 * np.maximum(total.powers / n, 1e-300)).any():
        raise InvalidData("the target does not vary; allowed: at least two values.")
    fit = total.solve()
    cross = total.cross / n - np.outer(total.features, total.targets) / n**2
    w = fit.coefficients
    explained = np.zeros(len(variance))
    for k in range(len(folds)):
        # The error on held-out rows is computed from sums over the rows.
        rest, part = _merged(folds, k), folds[k]
        if not part.rows:
            continue
        given = rest.solve()
        c, b = given.coefficients, given.intercept
        gram = np.triu(part.gram) + np.triu(part.gram, 1).T
        error = (
            part.powers - 2 * np.sum(c * part.cross, axis=0) - 2 * b * part.targets
            + np.einsum("ic,ij,jc->c", c, gram, c, optimize=True)
            + 2 * b * (part.features @ c) + part.rows * b**2
        )  # fmt: skip
        explained += error / (n * variance)
    explained = 1 - explained
    strength = _strengths(total, covariance)
    errors = _jackknife(folds, lambda sums: np.log(_strengths(sums, _covariance(sums))))
    # <y, K_0, y> = |Cov(x, y)|² / tr Sigma, minus tr Sigma var(y) / n, the bias from noise
    linear = np.maximum(np.sum(w * cross, axis=0), 1e-300)
    square = np.sum(cross**2, axis=0) - trace * np.maximum(variance - linear, 0) / n
    aligned = np.clip(square / trace / linear, strength, 1.0)
    return tuple(
        FeatureStrength(label, *(float(x[c]) if x is not None else None for x in
                        (strength, errors, aligned, explained)))  # type: ignore[arg-type]
        for c, label in enumerate(labels)
    )  # fmt: skip


def _jackknife(
    folds: list[ReadoutMoments], statistic: Callable[[ReadoutMoments], np.ndarray]
) -> np.ndarray | None:
    """Compute jackknife standard errors over fifths of the rows; None if this takes too long."""
    if len(folds[0].features) > 1000 or not all(part.rows for part in folds):
        return None
    k = len(folds)
    left = np.array([statistic(_merged(folds, place)) for place in range(k)])
    return np.asarray(np.sqrt((k - 1) / k * np.sum((left - left.mean(axis=0)) ** 2, axis=0)))


def _degrees(
    X: np.ndarray, Y: np.ndarray, covariance: np.ndarray
) -> tuple[tuple[float, ...], float]:
    """Compute the share of the variance on held-out rows that polynomials of each degree explain."""
    half = len(X) // 2
    Z = X / math.sqrt(float(np.trace(covariance)))
    inner, held = Z[:half] @ Z[:half].T, Z[half:] @ Z[:half].T
    centre = Y[:half].mean(axis=0)
    spread = np.sum((Y[half:] - centre) ** 2, axis=1)
    best = np.inf
    shares = []
    errors = [0.0]
    for degree in (1, 2, 3):
        fit = kernel_ridge((1 + inner) ** degree, Y[:half])
        miss = (1 + held) ** degree @ fit.coefficients + fit.intercept - Y[half:]
        lost = np.sum(miss**2, axis=1) / max(float(spread.mean()), 1e-300)
        errors.append(float(lost.std() / math.sqrt(len(lost))))
        # Polynomials of higher degree include the lower degrees, so that the explained share never falls.
        best = min(best, float(lost.mean()))
        shares.append(max(0.0, 1 - best))
    return tuple(shares), max(errors)
