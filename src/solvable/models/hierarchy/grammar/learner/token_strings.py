"""Strings of symbols as the input of classifiers that work level by level."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from solvable.arrays import check_integer
from solvable.errors import InvalidData
from solvable.fitting.inputs import validate_data


class StringClassifier(ClassifierMixin, BaseEstimator):
    """Base of the classifiers: checks strings, writes symbols as codes, and finds the depth."""

    branching: int
    classes_: np.ndarray
    symbols_: np.ndarray
    depth_: int
    n_features_in_: int

    def _start_fit(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Check strings and labels; return integer strings and label numbers."""
        try:
            strings, labels = validate_data(self, X, y, dtype="numeric")
        except ValueError as error:
            raise InvalidData(str(error)) from error
        return whole_numbers(strings), self._start_labels(labels, *strings.shape)

    def _start_labels(self, y: Any, n_samples: int, n_columns: int) -> np.ndarray:
        """Check labels, set classes and depth, and return label numbers."""
        check_integer("branching", self.branching, 2)
        try:
            labels = column_or_1d(y)
        except ValueError as error:
            raise InvalidData(str(error)) from error
        # scikit-learn's own check warns if there are few strings per class, which is allowed here.
        if labels.dtype.kind == "f" and not np.array_equal(labels, np.floor(labels)):
            raise InvalidData("the labels are continuous or NaN; allowed: classes.")
        if labels.size != n_samples:
            raise InvalidData(
                f"X has {n_samples} strings and y has {labels.size} labels; allowed: equal numbers."
            )
        self.n_features_in_ = n_columns
        self.depth_ = depth_of(n_columns, self.branching)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        if self.classes_.size < 2:
            raise InvalidData(
                f"all {labels.size} labels are {labels[0]!r}; allowed: at least 2 classes."
            )
        return np.asarray(numbers)

    def _checked(self, X: Any) -> np.ndarray:
        """Check that strings have the columns of the fit; return them as integers."""
        check_is_fitted(self, "depth_")
        try:
            strings = validate_data(self, X, dtype="numeric", reset=False)
        except ValueError as error:
            raise InvalidData(str(error)) from error
        return whole_numbers(strings)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, shape (n, n_classes)."""
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each string, shape (n,)."""
        numbers = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[numbers]


def depth_of(length: int, branching: int) -> int:
    """Return L for strings of s^L symbols."""
    depth, leaves = 0, 1
    while leaves < length:
        depth, leaves = depth + 1, leaves * branching
    if leaves != length or depth == 0:
        raise InvalidData(
            f"the strings have {length} symbols, which is no power of branching = {branching}; "
            f"allowed: {branching}, {branching**2}, {branching**3}, ... columns."
        )
    return depth


def whole_numbers(strings: np.ndarray) -> np.ndarray:
    """Return strings as integers; refuse other numbers."""
    if strings.dtype.kind in "iu":
        return strings
    with np.errstate(invalid="ignore"):
        whole = strings.astype(np.int64)
    if not np.array_equal(whole, strings):
        raise InvalidData(
            f"the strings have type {strings.dtype} and contain other values; allowed: whole numbers."
        )
    return whole


def observed_symbols(strings: np.ndarray) -> np.ndarray:
    """Return the different symbols in increasing order, without masks, which are negative."""
    symbols = np.unique(strings)
    symbols = symbols[symbols >= 0]
    if not symbols.size:
        raise InvalidData(
            "all symbols are negative, which means masked; allowed: at least one other."
        )
    return symbols


def symbol_codes(strings: np.ndarray, symbols: np.ndarray) -> np.ndarray:
    """Return the place of each symbol among the sorted symbols, and their number for any other."""
    places = np.minimum(np.searchsorted(symbols, strings), symbols.size - 1)
    return np.where(symbols[places] == strings, places, symbols.size)
