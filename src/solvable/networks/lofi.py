"""Estimators of layer-wise features without a gradient, in scikit-learn's conventions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, column_or_1d

from solvable.arrays import is_tensor, namespace, to_numpy
from solvable.errors import InvalidData
from solvable.fitting.inputs import validate_data, validated_tensor
from solvable.networks.base import NeuralLoFiBase, chosen_classes, labels_are_real, real_code
from solvable.networks.blocks import LabelCode


class NeuralLoFiTransformer(NeuralLoFiBase):
    r"""Transformer to learned features: filters and lifts (random features), without a readout.

    .. math:: \hat C = \frac1n \sum_\mu y_\mu\, z_\mu z_\mu^\top, \qquad h = V^\top z, \qquad
        z' = \frac{1}{\sqrt P}\,\sigma\!\Big(\frac{W^\top h}{c}\Big),

    with V the eigenvectors of largest modulus. See :class:`NeuralLoFiClassifier` for the parameters
    and the mathematics. The features are the inputs of the last infinitely wide lift, or the outputs of
    the last block if its width is finite.

    Parameters
    ----------
    blocks, final_reduce, scaling, image_shape, multiclass, centre_labels, label_map
        Same as in :class:`NeuralLoFiClassifier`.
    solver, null_replicates, random_state
        Same as in :class:`NeuralLoFiClassifier`.
    regularisation : float or "leave-one-out"
        Not used, as there is no readout.

    Attributes
    ----------
    filters_ : tuple of FilterReport
        Report of each filter.
    network_ : Network
        Fitted layers.
    n_features_in_ : int
        Number of columns of X.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from solvable.learners import Block
    >>> X, y = load_wine(return_X_y=True)
    >>> blocks = [Block(width=100), Block(reduce=5, width=None)]
    >>> NeuralLoFiTransformer(blocks, random_state=0).fit(X, y).transform(X).shape
    (178, 5)
    """

    def fit(self, X: Any, y: Any) -> NeuralLoFiTransformer:
        """Fit to samples in memory; labels are classes or real numbers."""
        X, y = _rows_and_labels(self, X, y)
        if labels_are_real(y):
            labels: np.ndarray = np.asarray(y, dtype=np.float64)
            code = real_code(labels, self.label_map)
        else:
            labels = np.unique(y, return_inverse=True)[1]
            code = LabelCode(np.bincount(labels), centre=bool(self.centre_labels))
        self._fit_arrays(X, labels, code, readout=False)
        return self

    def __sklearn_tags__(self) -> Any:
        """Scikit-learn tags; labels are required."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class NeuralLoFiRegressor(RegressorMixin, NeuralLoFiBase):
    r"""Regressor on features that are learned layer by layer, without a gradient.

    Each filter diagonalises

    .. math:: \hat C = \frac1n \sum_\mu \frac{y_\mu - \bar y}{\mathrm{std}(y)}\, z_\mu z_\mu^\top .

    See :class:`NeuralLoFiClassifier` for the mathematics.

    Parameters
    ----------
    blocks, final_reduce, scaling, image_shape, solver
        Same as in :class:`NeuralLoFiClassifier`.
    multiclass, centre_labels
        Not used: real labels give one operator and are always centred.
    label_map : {"identity", "tanh"}
        Map of the standardised labels in the filters. The hyperbolic tangent needs fewer samples and
        limits the effect of a few large labels. The readout is fitted to the labels themselves.
    regularisation, null_replicates, random_state
        Same as in :class:`NeuralLoFiClassifier`.

    Attributes
    ----------
    filters_ : tuple of FilterReport
        Report of each filter.
    network_ : Network
        Fitted layers and readout.
    readout_ : RidgeFit
        Penalty and degrees of freedom. Its leave-one-out error is not an estimate of the test error, as
        the filters have seen the labels.
    n_features_in_ : int
        Number of columns of X.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((400, 5))
    >>> y = X[:, 0] * X[:, 1]
    >>> NeuralLoFiRegressor(random_state=0).fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.8
    True
    """

    def fit(self, X: Any, y: Any) -> NeuralLoFiRegressor:
        """Fit to samples in memory."""
        X, y = _rows_and_labels(self, X, y, y_numeric=True)
        labels = np.asarray(y, dtype=np.float64)
        self._code = real_code(labels, self.label_map)
        self._fit_arrays(X, labels, self._code, readout=True)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict labels in the units of the training labels."""
        outputs = self._outputs(X)[:, 0]
        return np.asarray(outputs * self._code.deviation + self._code.mean)


class NeuralLoFiClassifier(ClassifierMixin, NeuralLoFiBase):
    r"""Classifier on features that are learned layer by layer, without a gradient.

    Each filter keeps the eigenvectors of largest modulus, of either sign, of the label-weighted
    second moment of its features,

    .. math:: \hat C = \frac1n \sum_\mu y_\mu\, z_\mu z_\mu^\top \quad (y = \pm 1), \qquad
        \hat S = \sum_c \hat C_c^2, \quad
        \hat C_c = \frac1n \sum_\mu (1\{y_\mu = c\} - \pi_c)\, z_\mu z_\mu^\top

    for many classes. Each lift is a layer of random features
    :math:`z = \sigma(W^\top h / c) / \sqrt P` or its kernel. The readout is a ridge with its penalty
    chosen by leave-one-out. Gradient flow from small weights
    follows the same operator at first order.

    Parameters
    ----------
    blocks : sequence of Block, optional
        Filter and lift of each block. The default is a lift, a filter of the significant directions of
        the centred features, and a lift of the kept coordinates and the inputs. Its lifts are infinitely
        wide for up to 4,000 samples and of width 2,000 for more.
    final_reduce : int, "auto" or None
        Number of directions that a last filter before the readout keeps.
    scaling : {"auto", "columns", "whitened", "global", "none"}
        Standardisation of the samples: each column; each column and without correlations (whose
        estimate is shrunk at few samples); all columns by one mean and deviation; none.
        "auto" is "global" if the columns share their bounds, as pixels do, and "columns" otherwise.
    image_shape : tuple of int, optional
        (height, width, channels) of the rows, for convolutional blocks.
    label_map : {"identity", "tanh"}
        Not used: classes have no map.
    multiclass : {"sum-of-squares", "alternating"}
        Combination of the operators of many classes: :math:`\hat S`, or :math:`\sum_c a_c \hat C_c`
        with the direction a that maximises its largest eigenvalue.
    centre_labels : bool
        If True, labels of two classes are centred. Default False: for unbalanced classes the raw
        labels gave the lower error, though their first directions are those of the mean.
    solver : {"auto", "dense", "lanczos", "krylov"}
        Solver of the eigenpairs; "auto" chooses by their number and size.
    regularisation : float or "leave-one-out"
        Ridge penalty of the readout, relative to the mean power of the centred features.
    null_replicates : int
        Number of draws of random labels for each null.
    random_state : int, RandomState, Generator or None
        Seed of lifts, nulls and solvers.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Class labels.
    filters_ : tuple of FilterReport
        Report of each filter: strengths of its directions, sample sizes at which they are expected to
        emerge, and their ratios to random labels.
    network_ : Network
        Fitted layers and readout.
    readout_ : RidgeFit
        Penalty and degrees of freedom. Its leave-one-out error is not an estimate of the test error, as
        the filters have seen the labels.
    n_features_in_ : int
        Number of columns of X.

    Raises
    ------
    InvalidData
        From ``fit`` for one class only.
    InvalidParameter
        From ``fit`` for a parameter out of range.
    MemoryLimitExceeded
        From ``fit`` if kernels or features do not fit into memory.

    See Also
    --------
    solvable.learners.network_blocks : Blocks without filters: the deep NNGP kernel, lazy features.
    solvable.learners.save_model : Store the fitted model in a file that cannot execute code.

    Notes
    -----
    arXiv:2605.13612; equations 1 to 4 and 29 of ``docs/derivations/lofi.md``. Acceptance tests in
    ``tests/models/lofi/test_paper.py``. Cost of a kernel block: :math:`n^3/3` for the factor,
    :math:`10 m^3 + n^3` for the readout, whose penalty is chosen on m = 700 rows at most; of a
    finite block: :math:`n P^2`. On MNIST-5k the error is that of the best Gaussian kernel, at six
    times its time (``docs/python.md``). A torch tensor is fitted on its device. The eigenproblems of
    filters are solved on the host, to which one matrix per filter and one block of vectors per step of a
    null are copied (``tests/networks/test_devices.py``).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = NeuralLoFiClassifier(scaling="global", random_state=0).fit(X[:300], y[:300] % 2)
    >>> bool(model.score(X[300:600], y[300:600] % 2) > 0.93)
    True
    """

    def fit(self, X: Any, y: Any) -> NeuralLoFiClassifier:
        """Fit to samples in memory."""
        X, y = _rows_and_labels(self, X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidData(
                f"y holds one class only ({self.classes_[0]}); allowed: at least two classes."
            )
        code = LabelCode(np.bincount(codes), centre=bool(self.centre_labels))
        self._fit_arrays(X, codes, code, readout=True)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Outputs (not probabilities): near -1 and 1, or near 0 and 1 in one column per class."""
        outputs = self._outputs(X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict(self, X: Any) -> np.ndarray:
        """Predict classes."""
        chosen = chosen_classes(self._outputs(X))
        return np.asarray(self.classes_[chosen])


def _rows_and_labels(estimator: Any, X: Any, y: Any, *, y_numeric: bool = False) -> Any:
    if is_tensor(X):
        return _tensor_and_labels(estimator, X, y)
    X, y = validate_data(
        estimator,
        X,
        y,
        dtype=[np.float64, np.float32],
        order="C",
        y_numeric=y_numeric,
        ensure_min_samples=2,
    )
    if not (X[0] != X).any():
        raise InvalidData("all samples are the same; allowed: columns that vary.")
    return X, y


def _tensor_and_labels(estimator: Any, X: Any, y: Any) -> Any:
    X = validated_tensor(estimator, X, reset=True)
    if y is None or len(X) != len(y):
        seen = "None" if y is None else f"{len(y)} labels"
        raise InvalidData(f"X has {len(X)} samples and y is {seen}; they must agree.")
    if len(X) < 2:
        raise InvalidData(f"X has n_samples={len(X)}; at least 2 samples are needed.")
    if not bool(namespace(X).any(X[0, :] != X)):
        raise InvalidData("all samples are the same; allowed: columns that vary.")
    labels = column_or_1d(to_numpy(y), warn=True)
    assert_all_finite(labels, input_name="y")
    return X, labels
