"""Checks and predictions that the classifiers of strings share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from solvable.arrays import check_integer
from solvable.errors import InvalidData
from solvable.fitting.inputs import validate_data

MASKED = -1
"""Symbol of a leaf that the learner does not see."""


def one_hot(X: np.ndarray, vocabulary: int) -> np.ndarray:
    """Vectors of symbols with mean 0 and norm 1, or constant for masked leaves, (n, d, V)."""
    # x -> (x - 1/V) (1 - 1/V)^-1/2
    vectors = (np.eye(vocabulary) - 1 / vocabulary) / max(1 - 1 / vocabulary, 1e-9) ** 0.5
    masked = np.full((1, vocabulary), vocabulary**-0.5)
    return np.asarray(np.concatenate([vectors, masked]).astype(np.float32)[X])


class StringClassifier(ClassifierMixin, BaseEstimator):
    """Checks of strings and labels, and the prediction of the label with the largest output."""

    branching: int
    vocabulary: int | None
    classes_: np.ndarray
    vocabulary_: int
    depth_: int
    n_features_in_: int

    def _training_data(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Check strings and labels; return symbols (n, s^L) and numbers of labels (n,)."""
        check_integer("branching", self.branching, 2)
        if self.vocabulary is not None:
            check_integer("vocabulary", self.vocabulary, 1)
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        depth = round(np.log(X.shape[1]) / np.log(self.branching))
        if self.branching**depth != X.shape[1] or not depth:
            raise InvalidData(
                f"the strings have {X.shape[1]} symbols with branching {self.branching}; allowed: a "
                "power of branching, at least branching itself."
            )
        self.depth_ = depth
        self.vocabulary_ = self.vocabulary or max(1, int(X.max()) + 1)
        self.classes_, codes = np.unique(y, return_inverse=True)
        return self._symbols(X), codes

    def _new_strings(self, X: Any) -> np.ndarray:
        """Check strings after fitting."""
        check_is_fitted(self)
        return self._symbols(validate_data(self, X, reset=False))

    def _symbols(self, X: np.ndarray) -> np.ndarray:
        """Return whole numbers from -1 (masked) to V - 1."""
        with np.errstate(invalid="ignore"):
            symbols = np.asarray(X).astype(np.intp)
        highest = self.vocabulary_ - 1
        if not np.array_equal(symbols, X) or symbols.min() < MASKED or symbols.max() > highest:
            raise InvalidData(
                f"the strings contain values from {np.min(X)} to {np.max(X)} of type {X.dtype}; "
                f"allowed: whole numbers from 0 to {highest}, and -1 for a masked leaf. Give "
                "vocabulary if a symbol may be missing from the training strings."
            )
        return symbols

    def _outputs(self, X: np.ndarray) -> np.ndarray:
        """Return one output per label for checked strings, shape (n, C)."""
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        """Return the label with the largest output for each string.

        Parameters
        ----------
        X : array-like of shape (n, s ** L)
            Symbols from 0 to V - 1, and -1 for a masked leaf.

        Returns
        -------
        ndarray of shape (n,)
            Predicted labels.

        Raises
        ------
        InvalidData
            If the strings have other lengths or symbols than those of the fit.
        """
        outputs = self._outputs(self._new_strings(X))
        return np.asarray(self.classes_[np.argmax(outputs, axis=1)])


class ProbabilityClassifier(StringClassifier):
    """Classifier of strings whose outputs are logarithms of probabilities, up to a constant."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each label in the order of `classes_`, shape (n, C)."""
        return softmax(self._outputs(self._new_strings(X)).astype(np.float64))

    def loss(self, X: Any, y: Any) -> float:
        """Return the mean cross-entropy -log p(y) of labelled strings, in natural units.

        Parameters
        ----------
        X : array-like of shape (n, s ** L)
            Strings.
        y : array-like of shape (n,)
            Their labels, which must occur in the training labels.

        Returns
        -------
        float
            Mean of minus the logarithm of the probability of the label.

        Raises
        ------
        InvalidData
            If a label did not occur in training.
        """
        symbols, labels = self._new_strings(X), np.asarray(y)
        codes = np.minimum(np.searchsorted(self.classes_, labels), len(self.classes_) - 1)
        if labels.shape != (len(symbols),) or not np.array_equal(self.classes_[codes], labels):
            raise InvalidData(
                "y contains labels that did not occur in training, or its length is not that of X; "
                "allowed: the labels of classes_, one for each string."
            )
        return mean_loss(softmax(self._outputs(symbols)), codes)


def softmax(outputs: np.ndarray) -> np.ndarray:
    """Return the probabilities of outputs (n, C)."""
    powers = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def mean_loss(probabilities: np.ndarray, codes: np.ndarray) -> float:
    """Return the mean cross-entropy of the numbers of labels (n,), probabilities (n, C)."""
    right = probabilities[np.arange(len(codes)), codes]
    return -float(np.mean(np.log(np.maximum(right, 1e-30))))
