"""Strings of symbols as the input of classifiers that work level by level."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

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
        check_integer("branching", self.branching, 2)
        try:
            strings, labels = validate_data(self, X, y, dtype="numeric")
            check_classification_targets(labels)
        except ValueError as error:
            raise InvalidData(str(error)) from error
        return whole_numbers(strings), self._start_labels(labels)

    def _start_labels(self, labels: np.ndarray) -> np.ndarray:
        """Set classes and depth; return label numbers."""
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        if self.classes_.size < 2:
            raise InvalidData(
                f"all {labels.size} labels are {labels[0]!r}; allowed: at least 2 classes."
            )
        self.depth_ = depth_of(self.n_features_in_, self.branching)
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
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]


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
    whole = strings.astype(np.int64)
    if not np.array_equal(whole, strings):
        raise InvalidData(
            f"the strings have type {strings.dtype} and contain fractions; allowed: whole numbers."
        )
    return whole


def symbol_codes(strings: np.ndarray, symbols: np.ndarray) -> np.ndarray:
    """Return the place of each symbol among the sorted symbols, and their number for any other."""
    places = np.minimum(np.searchsorted(symbols, strings), symbols.size - 1)
    return np.where(symbols[places] == strings, places, symbols.size)
