"""A cascade of kernel ridge classifiers: predicted labels become features of further labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_random_state

from solvable.errors import InvalidData, InvalidParameter, quoted
from solvable.fitting.inputs import checked_data
from solvable.models.hierarchy.labels.parameters import check_cascade


class LabelCascadeClassifier(ClassifierMixin, BaseEstimator):
    r"""Multi-label classifier whose predicted labels are features for further labels.

    A block fits all labels that are not yet accepted by kernel ridge regression on the inputs and the
    accepted labels, :math:`u=(x,\hat z)`, with :math:`K(u,u')=\tfrac12(1+\langle u,u'\rangle)^2`. Each
    sample is predicted by a fit that did not use its fold. A label whose error on these predictions is
    below ``threshold`` is accepted: the signs of the predictions become a feature in later blocks. New
    inputs use fits on all samples. Inputs should have mean 0 and variance about 1.
    arXiv:2601.00455, where the blocks are layers of a network; a block takes :math:`n^3/3` operations.

    Parameters
    ----------
    blocks : int
        Largest number of blocks.
    folds : int
        Number of folds; 1 predicts each sample by a fit that includes it.
    threshold : float
        Largest out-of-fold error of an accepted label, above 0 and at most 0.5.
    ridge : float
        Ridge penalty, above 0; each product of two different features has the weight 1.
    random_state : int, RandomState or None
        Seed of the folds.

    Attributes
    ----------
    classes_ : ndarray of shape (2,) or list of ndarray
        The two values of each label; a list for several labels.
    accepted_, out_of_fold_error_ : ndarray of shape (labels,)
        Number of the block that accepted each label, 0 if none did, and its error in its last fit.
    n_blocks_, n_features_in_ : int
        Number of blocks fitted, and number of inputs.

    Examples
    --------
    >>> from solvable.models.hierarchy.labels.target import LabelHierarchy
    >>> target = LabelHierarchy(dimension=8, depth=2, labels=5)
    >>> X, Y = target.sample(400, np.random.default_rng(0))
    >>> cascade = LabelCascadeClassifier(random_state=0).fit(X[:300], Y[:300])
    >>> float(np.mean(cascade.predict(X[300:]) == Y[300:]))
    1.0
    """

    def __init__(
        self,
        blocks: int = 4,
        folds: int = 2,
        threshold: float = 0.15,
        ridge: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.blocks = blocks
        self.folds = folds
        self.threshold = threshold
        self.ridge = ridge
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        """Labels with two values, one or several of them."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> LabelCascadeClassifier:
        """Fit the blocks to samples (n, d) and labels (n, labels), or (n,) for one label.

        A label has any two values, such as -1 and 1, 0 and 1, or two words; `predict` returns these.
        """
        X, signs = self._checked(X, y)
        n, labels = signs.shape
        random = self._random()
        fold = random.permutation(n) % self.folds
        self.accepted_ = np.zeros(labels, dtype=np.int64)
        self.out_of_fold_error_ = np.full(labels, 0.5)
        self._fits: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
        features = X
        for block in range(1, self.blocks + 1):
            open_labels = np.flatnonzero(self.accepted_ == 0)
            if not open_labels.size:
                break
            targets = signs[:, open_labels]
            held_out = self._held_out(features, targets, fold)
            self.out_of_fold_error_[open_labels] = np.mean(held_out != targets, axis=0)
            accepted = self.out_of_fold_error_[open_labels] < self.threshold
            dual = _solve(features, targets, self.ridge)
            self._fits.append((features, dual, open_labels, accepted))
            self.accepted_[open_labels[accepted]] = block
            if not accepted.any():
                break
            features = np.column_stack([features, held_out[:, accepted]])
        self.n_blocks_ = len(self._fits)
        return self

    def _held_out(self, features: np.ndarray, targets: np.ndarray, fold: np.ndarray) -> np.ndarray:
        """Predict each sample by a fit to the other folds."""
        predicted = np.empty_like(targets)
        for number in range(self.folds):
            out = fold == number
            used = ~out if self.folds > 1 else out
            dual = _solve(features[used], targets[used], self.ridge)
            predicted[out] = _signs(kernel(features[out], features[used]) @ dual)
        return predicted

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Predict the labels with one block, two blocks and so on."""
        check_is_fitted(self)
        features = checked_data(self, X, dtype=np.float64, reset=False)
        signs = np.ones((len(features), self.accepted_.size))
        for training, dual, open_labels, accepted in self._fits:
            signs[:, open_labels] = _signs(kernel(features, training) @ dual)
            features = np.column_stack([features, signs[:, open_labels[accepted]]])
            yield self._labels(signs)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the labels, shape (n, labels), or (n,) after a fit to one label."""
        *_, last = self.staged_predict(X)
        return last

    def _labels(self, signs: np.ndarray) -> np.ndarray:
        if not isinstance(self.classes_, list):
            return np.asarray(np.where(signs[:, 0] > 0, self.classes_[-1], self.classes_[0]))
        columns = zip(signs.T, self.classes_, strict=True)
        return np.column_stack([np.where(column > 0, v[-1], v[0]) for column, v in columns])

    def _random(self) -> np.random.RandomState:
        """Return the source of the folds."""
        try:
            return check_random_state(self.random_state)
        except ValueError as error:
            raise InvalidParameter(
                f"random_state is {quoted(self.random_state)}; allowed: an integer from 0 to 2^32 - 1, a "
                "RandomState, or None."
            ) from error

    def _checked(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Check the parameters and the data; return the samples and the labels as signs."""
        X, y = checked_data(self, X, y, dtype=np.float64, multi_output=True)
        settings = {name: getattr(self, name) for name in ("blocks", "folds", "threshold", "ridge")}
        check_cascade(**settings, samples=len(X))
        columns = np.reshape(y, (len(X), -1))
        try:
            check_classification_targets(y)
            values = [np.unique(column) for column in columns.T]
        except (TypeError, ValueError) as error:
            raise InvalidData(
                f"{error}; allowed: two values of each label, such as -1 and 1."
            ) from error
        for k, value in enumerate(values):
            if value.size > 2:
                raise InvalidData(
                    f"Only binary classification is supported: label {k} has {value.size} values; "
                    "allowed: two, such as -1 and 1."
                )
        self.classes_ = values if y.ndim == 2 else values[0]
        highest = np.array([value[-1] for value in values])
        return X, np.where(columns == highest, 1.0, -1.0)


def kernel(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Kernel matrix (1 + u . u')² / 2: weight 1 for each feature and each product of two features."""
    return np.asarray((1 + rows @ others.T) ** 2 / 2)


def _solve(features: np.ndarray, targets: np.ndarray, ridge: float) -> np.ndarray:
    """Dual coefficients of ridge regression."""
    from scipy.linalg import cho_factor, cho_solve

    gram = kernel(features, features)
    gram[np.diag_indices(len(gram))] += ridge
    factor = cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
    return np.asarray(cho_solve(factor, targets, check_finite=False))


def _signs(scores: np.ndarray) -> np.ndarray:
    """Signs of scores; a score of 0 counts as positive."""
    return np.where(scores >= 0, 1.0, -1.0)
