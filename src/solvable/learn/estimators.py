"""Estimators with the conventions of scikit-learn that do what the command ``solvable learn`` does."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from solvable.arrays import check_integer
from solvable.data import load
from solvable.errors import InvalidParameter
from solvable.learn.learning import learn
from solvable.learn.request import Metric, Request
from solvable.learn.results import Learned
from solvable.learn.stored_models import save_fitted


def _check_no_options(options: dict[str, Any]) -> None:
    # A named argument `sample_weight` would state to scikit-learn that weights are taken.
    if options.pop("sample_weight", None) is not None:
        raise InvalidParameter(
            "sample_weight is given; allowed: None, as the errors on held-out rows, their intervals and "
            "the forecast count each row once. Leave it out, or use an estimator that takes weights."
        )
    if options:
        raise TypeError(f"fit got unexpected arguments {', '.join(options)}; allowed: X, y.")


class _Table(BaseEstimator):
    """Comparison of methods on held-out rows; the best one predicts."""

    learned_: Learned

    def __init__(
        self,
        *,
        metric: Metric | None = None,
        folds: int = 5,
        rows: int = 20_000,
        seconds: float | None = None,
        n_jobs: int | None = 1,
        random_state: int = 0,
    ) -> None:
        self.metric = metric
        self.folds = folds
        self.rows = rows
        self.seconds = seconds
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, X: Any, y: Any, task: Literal["classification", "regression"]) -> None:
        check_integer("random_state", self.random_state, 0)
        request = Request(
            folds=self.folds,
            rows=self.rows,
            seed=self.random_state,
            metric=self.metric,
            seconds=self.seconds,
        )
        workers = effective_n_jobs(-1 if self.n_jobs is None else self.n_jobs)
        self.learned_ = learn(load(X, y, task=task), request, workers=workers)

    def _checked(self, X: Any, y: Any = "no_validation") -> Any:
        """Check the inputs, and the labels in `fit`; data frames keep their columns."""
        fits = not isinstance(y, str)
        frame = hasattr(X, "columns") or hasattr(X, "column_names")
        options: dict[str, Any] = {"reset": fits, "skip_check_array": frame}
        if not frame:
            options |= {"ensure_all_finite": "allow-nan", "dtype": "numeric"}
            if fits:
                options["y_numeric"] = isinstance(self, RegressorMixin)
        return validate_data(self, X, y, **options)

    def save(self, path: str | Path) -> Path:
        """Write the model with the preparation of its columns, for ``solvable predict``.

        Parameters
        ----------
        path : str or path
            File that ends in ``.safetensors``.

        Returns
        -------
        Path
            The file.
        """
        check_is_fitted(self, "learned_")
        return save_fitted(self.learned_.model, path, notes=self.learned_.notes)

    def __sklearn_tags__(self) -> Any:
        """Scikit-learn tags; missing values are allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags


class TableRegressor(RegressorMixin, _Table):
    """Regressor for tables: the best of nine methods and their blend, as named by ``solvable learn``.

    Parameters
    ----------
    metric : {"r2", "mae"}, optional
        Measure by which methods are chosen; by default the variance not explained.
    folds : int
        Parts of the rows, 2 to 20; each is predicted from the others.
    rows : int
        Largest number of rows; of more rows a random subset is used.
    seconds : float, optional
        Time after which no further method is fitted, above 0. Results then depend on the machine.
    n_jobs : int, optional
        Local processes; None or -1 for one per core.
    random_state : int
        Seed of the folds and random layers.

    Attributes
    ----------
    learned_ : Learned
        Errors of all methods on held-out rows, importance of the columns, forecast, and the model.
    n_features_in_ : int
        Number of columns of X.

    Notes
    -----
    Takes data frames with columns of text, dates and missing values. At least 20 rows are needed. Rows
    with equal values in all columns and the target count once. Weights of
    rows are refused: the errors that choose the method, its interval and the forecast count rows.
    Backed by ``tests/learn/test_estimators.py``.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((60, 2))
    >>> model = TableRegressor(folds=2).fit(X, X[:, 0])
    >>> model.score(X, X[:, 0]) > 0.9
    True
    """

    def fit(self, X: Any, y: Any, **options: Any) -> TableRegressor:
        """Compare the methods on held-out rows, and fit the best one to all rows."""
        _check_no_options(options)
        X, y = self._checked(X, y)
        self._learn(X, y, "regression")
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted numbers, shape (n,)."""
        check_is_fitted(self, "learned_")
        return np.asarray(self.learned_.predict(self._checked(X)), dtype=np.float64)


class TableClassifier(ClassifierMixin, _Table):
    """Classifier for tables: the best of nine methods and their blend, as named by ``solvable learn``.

    Parameters
    ----------
    metric : {"accuracy", "balanced-accuracy", "auc", "log-loss"}, optional
        Measure by which methods are chosen; by default the wrong predictions.
    folds, rows, seconds, n_jobs, random_state
        Same as in :class:`TableRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Classes. A class with a single row is never predicted.
    learned_ : Learned
        Errors of all methods on held-out rows, importance of the columns, forecast, and the model.
    n_features_in_ : int
        Number of columns of X.

    Notes
    -----
    See :class:`TableRegressor`. `predict` is that of the named model; the calibrated probabilities may
    favour another class in a few rows near the boundary.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((60, 2))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> model = TableClassifier(folds=2).fit(X, y)
    >>> model.predict_proba(X).shape, model.score(X, y) > 0.9
    ((60, 2), True)
    """

    def fit(self, X: Any, y: Any, **options: Any) -> TableClassifier:
        """Compare the methods on held-out rows, and fit the best one to all rows."""
        _check_no_options(options)
        X, y = self._checked(X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(np.asarray(y).ravel(), return_inverse=True)
        if len(self.classes_) == 1:
            raise ValueError(f"y has 1 class, {self.classes_[0]!r}; allowed: at least 2.")
        self._learn(X, codes, "classification")
        return self

    def _places(self, labels: Any) -> np.ndarray:
        return np.array([int(float(label)) for label in labels], dtype=np.int64)

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted classes, shape (n,)."""
        check_is_fitted(self, "learned_")
        return np.asarray(self.classes_[self._places(self.learned_.predict(self._checked(X)))])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the calibrated probabilities of the classes, shape (n, C)."""
        check_is_fitted(self, "learned_")
        known = self.learned_.predict_probabilities(self._checked(X))
        found = np.zeros((len(known), len(self.classes_)))
        found[:, self._places(self.learned_.class_labels)] = known
        return found
