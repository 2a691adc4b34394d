"""Strings of symbols as the input of classifiers: checks, predictions and probabilities."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from solvable.arrays import check_integer
from solvable.errors import InvalidData, InvalidParameter, quoted
from solvable.fitting.inputs import checked_data
from solvable.models.hierarchy.encodings import MASKED


class StringClassifier(ClassifierMixin, BaseEstimator):
    """Base of the classifiers: checks strings and labels, and finds the depth."""

    branching: int
    classes_: np.ndarray
    depth_: int
    n_features_in_: int

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the classifier to strings, shape (n, s ** L), and two or more labels, shape (n,)."""
        # Strings are whole numbers: symbols from 0 on, and -1 for a masked leaf.
        self._check_settings()
        self._fit_strings(*self._start_fit(X, y))
        return self

    def _check_settings(self) -> None:
        """Refuse parameters out of range."""

    def _fit_strings(self, strings: np.ndarray, labels: np.ndarray) -> None:
        """Fit checked strings and the numbers of their labels."""
        raise NotImplementedError

    def _start_fit(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Check strings and labels; return integer strings and label numbers."""
        strings, labels = checked_data(self, X, y, dtype="numeric")
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
        try:
            self.classes_, numbers = np.unique(labels, return_inverse=True)
        except TypeError as error:
            raise InvalidData("the labels have several types; allowed: one type.") from error
        if self.classes_.size < 2:
            raise InvalidData(
                f"all {labels.size} labels are {labels[0]}; allowed: at least 2 classes."
            )
        return np.asarray(numbers)

    def _checked(self, X: Any) -> np.ndarray:
        """Check that strings have the columns of the fit; return them as integers."""
        check_is_fitted(self, "depth_")
        return whole_numbers(checked_data(self, X, dtype="numeric", reset=False))

    def _outputs(self, symbols: np.ndarray) -> np.ndarray:
        """Return one output per class for checked strings, shape (n, n_classes)."""
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the largest output for each string, shape (n,)."""
        outputs = self._outputs(self._checked(X))
        return np.asarray(self.classes_[np.argmax(outputs, axis=1)])


class VocabularyClassifier(StringClassifier):
    """Classifier of strings whose symbols are 0 to V - 1, and -1 for a masked leaf."""

    largest_vocabulary = 2**13  # a table of the vectors of all symbols has V² entries
    vocabulary: int | None
    blank: int | None = None
    vocabulary_: int

    def _start_fit(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Check strings and labels, and set the vocabulary."""
        if self.vocabulary is not None:
            check_integer("vocabulary", self.vocabulary, 2, self.largest_vocabulary)
        strings, labels = super()._start_fit(X, y)
        if self.blank is not None:
            check_integer("blank", self.blank, 2, self.largest_vocabulary)
        self.vocabulary_ = self.blank or self.vocabulary or max(2, int(strings.max()) + 1)
        if self.vocabulary_ > self.largest_vocabulary:
            raise InvalidData(
                f"the strings contain the symbol {strings.max()}; allowed: symbols below "
                f"{self.largest_vocabulary}. Number the symbols that occur 0, 1, 2, ..."
            )
        return self._in_vocabulary(strings), labels

    def _checked(self, X: Any) -> np.ndarray:
        """Check strings after fitting."""
        return self._in_vocabulary(super()._checked(X))

    def _in_vocabulary(self, strings: np.ndarray) -> np.ndarray:
        highest = self.vocabulary_ - (self.blank is None)
        if strings.min() < MASKED or strings.max() > highest:
            raise InvalidData(
                f"the strings contain symbols from {strings.min()} to {strings.max()}; allowed: 0 to "
                f"{highest}, and {MASKED} for a masked leaf. Give vocabulary if a symbol may be missing "
                "from the training strings."
            )
        return strings.astype(np.intp, copy=False)


class ProbabilityClassifier(VocabularyClassifier):
    """Classifier of strings whose outputs are logarithms of probabilities, up to a constant."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each label in the order of `classes_`, shape (n, C)."""
        return softmax(self._outputs(self._checked(X)).astype(np.float64))

    def loss(self, X: Any, y: Any) -> float:
        """Return the mean cross-entropy -log p(y) of labelled strings, in natural units."""
        symbols, labels = self._checked(X), np.asarray(y)
        codes = np.minimum(np.searchsorted(self.classes_, labels), len(self.classes_) - 1)
        if labels.shape != (len(symbols),) or not np.array_equal(self.classes_[codes], labels):
            raise InvalidData(
                "y contains labels that did not occur in training, or its length is not that of X; "
                "allowed: the labels of classes_, one for each string."
            )
        return mean_loss(softmax(self._outputs(symbols)), codes)


def check_flag(name: str, value: Any) -> None:
    """Refuse a value that is not True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidParameter(f"{name} is {quoted(value)}; allowed: True or False.")


def softmax(outputs: np.ndarray) -> np.ndarray:
    """Return the probabilities of outputs (n, C)."""
    powers = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def mean_loss(probabilities: np.ndarray, codes: np.ndarray) -> float:
    """Return the mean cross-entropy of the numbers of labels (n,), probabilities (n, C)."""
    right = probabilities[np.arange(len(codes)), codes]
    return -float(np.mean(np.log(np.maximum(right, 1e-30))))


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
