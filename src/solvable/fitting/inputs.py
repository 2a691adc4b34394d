"""Check the samples and labels of a learner: arrays, files, sources and tensors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from solvable.arrays import Array, Source, as_source, is_tensor, namespace, to_numpy
from solvable.errors import InvalidData, InvalidParameter, shortened


def is_source_like(X: Any) -> bool:
    """Return True for a source, a path or a tensor, which scikit-learn does not validate."""
    return isinstance(X, (str, Path, Source)) or is_tensor(X)


def validated_tensor(estimator: Any, X: Array, *, reset: bool) -> Array:
    """Check a tensor of samples on its device; return the tensor as floats and without gradients."""
    xp = namespace(X)
    X = X.detach() if hasattr(X, "detach") else X
    if X.ndim != 2:
        raise InvalidData(f"Expected 2D array, got {X.ndim}D array instead; allowed: shape (n, d).")
    if X.dtype not in (xp.float32, xp.float64):
        X = xp.astype(X, xp.float64)
    wanted = X.shape[1] if reset else estimator.n_features_in_
    if X.shape[1] != wanted:
        raise InvalidData(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting {wanted} "
            "features as input."
        )
    if not bool(xp.all(xp.isfinite(X))):
        raise InvalidData("Input X contains NaN or infinity; allowed: finite numbers.")
    if reset:
        estimator.n_features_in_ = wanted
        vars(estimator).pop("feature_names_in_", None)
    return X


def validate_data(estimator: Any, X: Any, y: Any = "no_validation", **wanted: Any) -> Any:
    """Check samples and labels with scikit-learn; a tensor is detached from its gradient."""
    from sklearn.utils import validation

    X, y = (to_numpy(given) if hasattr(given, "detach") else given for given in (X, y))
    return validation.validate_data(estimator, X, y, **wanted)


def checked_data(estimator: Any, X: Any, y: Any = "no_validation", **wanted: Any) -> Any:
    """Check as :func:`validate_data` does; a refusal is `InvalidData` of one line."""
    try:
        return validate_data(estimator, X, y, **wanted)
    except (TypeError, ValueError) as error:
        if isinstance(error, TypeError) and "Sparse" not in str(error):
            raise  # scikit-learn requires the type of this error for objects that are no numbers
        # Further lines repeat the array or recommend other estimators.
        first, _, rest = str(error).partition("\n")
        if "Reshape your data" in rest:
            first = f"{first.removesuffix(':')}; allowed: shape (n, d). Reshape your data."
        elif "NaN" in first or "infinity" in first:
            first = f"{first.removesuffix('.')}; allowed: finite numbers."
        raise InvalidData(shortened(first)) from error


def validated_fit_input(estimator: Any, X: Array | Source, y: Array) -> tuple[Source, np.ndarray]:
    """Check samples and labels; return a source and float64 labels, and set ``n_features_in_``."""
    from sklearn.utils.validation import column_or_1d

    if is_source_like(X):
        source = as_source(X)
        try:
            labels = column_or_1d(to_numpy(y), dtype=np.float64, warn=True)
        except ValueError as error:
            raise InvalidData(f"y must be a 1d array of numbers: {error}") from error
        if not np.isfinite(labels).all():
            raise InvalidData(
                f"{np.count_nonzero(~np.isfinite(labels))} of {labels.size} labels are NaN or "
                "infinite; allowed: finite numbers. Drop or impute them."
            )
        if labels.size != source.n_samples:
            raise InvalidData(
                f"X has {source.n_samples} samples and y has {labels.size}; allowed: equal numbers."
            )
        if source.n_samples < 2:
            raise InvalidData(f"X has n_samples={source.n_samples}; allowed: at least 2 samples.")
        estimator.n_features_in_ = source.n_columns
        return source, labels
    if y is None:
        raise InvalidData(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    try:
        array, labels = validate_data(
            estimator,
            X,
            y,
            dtype=[np.float64, np.float32],
            y_numeric=True,
            ensure_min_samples=2,
        )
        return as_source(array), np.asarray(labels, dtype=np.float64)
    except ValueError as error:
        raise InvalidData(str(error)) from error


def validated_input(estimator: Any, X: Array | Source) -> Source:
    """Check that samples have the columns of the fit; return the samples as a source."""
    if is_source_like(X):
        source = as_source(X)
        if source.n_columns != estimator.n_features_in_:
            raise InvalidData(
                f"X has {source.n_columns} features, but {type(estimator).__name__} is expecting "
                f"{estimator.n_features_in_} features as input."
            )
        return source
    try:
        array = validate_data(estimator, X, dtype=[np.float64, np.float32], reset=False)
    except ValueError as error:
        raise InvalidData(str(error)) from error
    return as_source(array)


LARGEST = 1e30  # largest number in samples and labels whose products of eight do not overflow


def refuse_large_numbers(**arrays: Array) -> None:
    """Raise if an array holds numbers whose products overflow, so that results would be NaN."""
    for name, array in arrays.items():
        xp = namespace(array)
        size = float(xp.max(xp.abs(array))) if array.shape[0] else 0.0
        if not size <= LARGEST:
            raise InvalidData(
                f"{name} holds numbers of size {size:.3g}; allowed: up to {LARGEST:g}, because products "
                f"of larger ones overflow. Divide {name} by a constant."
            )


def finite_outputs(outputs: np.ndarray) -> np.ndarray:
    """Return predictions; raise if some overflowed."""
    count = int(np.count_nonzero(~np.isfinite(outputs)))
    if count:
        raise InvalidData(
            f"{count} of {outputs.size} predictions overflow; allowed: samples of about the size of the "
            "training samples. Use the units of the training samples."
        )
    return outputs


def by_blocks(function: Callable[[np.ndarray], np.ndarray], X: np.ndarray, rows: int) -> np.ndarray:
    """Apply a function of samples to at most `rows` rows at a time."""
    return np.concatenate([function(X[start : start + rows]) for start in range(0, len(X), rows)])


def seed_from(random_state: Any) -> int:
    """Return the seed of one fit: the given integer, or one drawn from the given generator."""
    from sklearn.utils import check_random_state

    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise InvalidParameter(
            f"random_state is {random_state!r}; allowed: an integer, a RandomState, a Generator, "
            "or None."
        ) from error
