r"""Layer-wise filters coupled backwards: each layer also learns what the layers above use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from solvable.arrays import check_integer, is_real, random_stream
from solvable.errors import InvalidData, InvalidParameter, unknown_choice
from solvable.fitting.inputs import by_blocks, seed_from, validate_data
from solvable.fitting.ridge import Regularisation
from solvable.networks.backlofi_network import forward_layers, propagate
from solvable.networks.backlofi_signals import SIGNALS, Signal
from solvable.networks.backlofi_steps import DROPS, Drop, PassSettings, replaced_columns
from solvable.networks.backlofi_trainer import Outcome, Rows, train
from solvable.networks.base import (
    chosen_classes,
    real_code,
    standardise_columns,
    stratified_split,
)
from solvable.networks.blocks import LabelCode
from solvable.operators.activations import check_activation


class _BackLoFi(TransformerMixin, BaseEstimator):
    """Base class of the coupled classifier and the coupled regressor."""

    def __init__(
        self,
        signal: Signal = "first_order",
        *,
        depth: int = 3,
        reduce: int | Sequence[int] = 64,
        width: int | Sequence[int] = 1000,
        activation: str = "relu",
        first_moment: bool = True,
        n_passes: int = 4,
        fraction: float = 0.2,
        amplitude: float = 0.25,
        drop: Drop = "rayleigh",
        damping: float = 1.0,
        scaling: Literal["columns", "global", "none"] = "columns",
        held_back: float | int = 0.2,
        regularisation: Regularisation = "leave-one-out",
        random_state: Any = 0,
    ) -> None:
        self.signal = signal
        self.depth = depth
        self.reduce = reduce
        self.width = width
        self.activation = activation
        self.first_moment = first_moment
        self.n_passes = n_passes
        self.fraction = fraction
        self.amplitude = amplitude
        self.drop = drop
        self.damping = damping
        self.scaling = scaling
        self.held_back = held_back
        self.regularisation = regularisation
        self.random_state = random_state

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return the features of the last layer."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return propagate(self.layers_, self._scaled(X))

    def _outputs(self, X: np.ndarray) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)

        def outputs(rows: np.ndarray) -> np.ndarray:
            features = propagate(self.layers_, self._scaled(rows))
            return np.asarray(features @ self.readout_.coefficients + self.readout_.intercept)

        return by_blocks(outputs, X, 4096)

    def _train(self, X: np.ndarray, labels: np.ndarray, n_classes: int) -> LabelCode:
        """Fit to class numbers, or to real labels if there are no classes."""
        reduce, widths = _checked_sizes(self)
        seed = seed_from(self.random_state)
        groups = labels if n_classes else np.zeros(len(labels))
        kept, apart = split_rows(groups, self.held_back, seed)
        kept_labels = labels[kept]
        code = (
            LabelCode(_class_counts(kept_labels, n_classes))
            if n_classes
            else real_code(kept_labels)
        )
        self.scaling_ = standardise_columns(X[kept], self.scaling)
        encoded = code.encode(labels)
        rows = Rows(self._scaled(X), code.weights(encoded), code.outputs(encoded))
        fitted, held_back = (
            Rows(rows.inputs[part], rows.labels[part], rows.targets[part]) for part in (kept, apart)
        )
        layers = forward_layers(
            fitted.inputs,
            fitted.labels,
            reduce=reduce,
            widths=widths,
            activation=self.activation,
            first_moment=self.first_moment,
            seed=seed,
        )
        outcome = train(
            layers,
            fitted,
            held_back,
            PassSettings(
                signal=self.signal,
                n_replaced=replaced_columns(layers, self.fraction),
                amplitude=float(self.amplitude),
                drop=self.drop,
                damping=float(self.damping),
                seed=seed,
            ),
            int(self.n_passes),
            self.regularisation,
            _misclassified if n_classes else _not_classes,
        )
        self._keep(outcome, apart)
        return code

    def _keep(self, outcome: Outcome, apart: np.ndarray) -> None:
        self.layers_ = outcome.layers
        self.readout_ = outcome.readout
        self.history_ = outcome.history
        self.best_pass_ = outcome.best_pass
        self.stopped_reason_ = outcome.stopped_reason
        self.held_back_rows_ = apart

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        return X if self.scaling_ is None else self.scaling_.apply(X)


class BackLoFiClassifier(ClassifierMixin, _BackLoFi):
    r"""Classifier of filter-then-lift layers that are coupled backwards.

    Layers are fitted from the inputs upwards by spectral filters V and lifts W (random features),

    .. math:: z^\ell=\frac1{\sqrt p}\,\sigma\Big(\frac1cW_\ell^\top V_\ell^\top z^{\ell-1}\Big),

    with V the first moment and the leading eigenvectors of :math:`\frac1n\sum y\,zz^\top`, W
    Gaussian, and a ridge readout. Such filters miss directions that only the layers above can use.
    Then passes run from the top down. At each boundary between layers the leading singular pairs of
    :math:`\frac1n\sum\Gamma z^\top`, with :math:`\Gamma` a backward signal at the layer above,
    replace the least important columns on both sides (:func:`coupled_pass` in
    ``backlofi_steps.py``), and the readout is fitted again.

    Passes can diverge. They are monitored on rows that neither filters nor readout use: the fit keeps
    the pass (or the forward fit) with the lowest squared error on these rows, and stops when this error
    or the scale of the features exceeds its limits.

    Parameters
    ----------
    signal : {"first_order", "mean_field", "exact", "local"}
        Approximation of the chain rule in the backward signal.
    depth : int
        Number of layers, at least 2.
    reduce : int or sequence of int
        Number k of eigenvectors kept by each filter.
    width : int or sequence of int
        Number p of neurons of each layer.
    activation : str
        Any of :mod:`solvable.operators.activations` except "step".
    first_moment : bool
        If True, the first moment is an additional column that is never replaced.
    n_passes : int
        Largest number of passes.
    fraction : float
        Fraction r/k of the columns of a filter that a pass replaces on each side of a boundary, from 0
        to 0.5; at least one column unless it is 0. At 0 the result is the forward fit.
    amplitude : float
        Root mean square :math:`\beta` of a new coordinate relative to the forward ones. The authors
        use 0.25 in dense networks; the value does not transfer to other architectures.
    drop : {"rayleigh", "gradient-importance", "earlier"}
        Columns that are replaced: those with the lowest :math:`|v^\top\hat Cv|/\|v\|^2`, with the lowest
        linearised gradient, or those that earlier passes put in.
    damping : float
        Weight of the new weights in the mix with the old ones, above 0 to 1 (new weights only).
    scaling : {"columns", "global", "none"}
        Standardise each column, all columns by one mean and deviation, or nothing.
    held_back : float or int
        Rows that monitor the passes: a fraction of each class, or a number of last rows.
    regularisation : float or "leave-one-out"
        Ridge penalty relative to the mean power of the features, or its choice by leave-one-out.
    random_state : int, RandomState, Generator or None
        Seed of lifts and held-back rows.

    Attributes
    ----------
    history_ : tuple of PassRecord
        Held-back error, training error and feature scale of each pass, the forward fit first.
    best_pass_ : int
        Number of the pass that was kept; 0 is the forward fit.
    stopped_reason_ : str
        Reason why the passes ended.
    held_back_rows_ : ndarray of int
        Rows of the training set that neither filters nor readout used.
    layers_ : tuple of CoupledLayer
        Fitted layers.
    readout_ : RidgeFit
        Ridge readout.
    classes_ : ndarray
        Class labels.

    Raises
    ------
    InvalidParameter, InvalidData, NotConverged
        From ``fit``.

    Notes
    -----
    The held-back error of the kept pass is the lowest of several and therefore slightly optimistic:
    measure the error on separate rows. Time of a pass about
    :math:`2nP^2` per boundary and :math:`nP^2+10P^3/3` for the readout, memory :math:`4nP` per
    layer. Measured gains are in ``docs/systems/neural-lofi-images.md``. Equations 33 to 35 of
    ``docs/derivations/lofi.md`` (the authors' article has no arXiv number); tested in
    ``tests/networks/test_backlofi.py``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 5))
    >>> model = BackLoFiClassifier(depth=2, reduce=3, width=50).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> model.best_pass_ <= len(model.history_) - 1 <= 4
    True
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> BackLoFiClassifier:
        """Fit the forward filters, then couple the layers backwards."""
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, encoded = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidData(f"y holds {len(self.classes_)} class; allowed: at least two classes.")
        self._train(X, encoded, len(self.classes_))
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Outputs (not probabilities): near -1 and 1, or near 0 and 1 in one column per class."""
        outputs = self._outputs(X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict classes."""
        chosen = chosen_classes(self._outputs(X))
        return np.asarray(self.classes_[chosen])


class BackLoFiRegressor(RegressorMixin, _BackLoFi):
    r"""Regressor of filter-then-lift layers that are coupled backwards.

    Same method as :class:`BackLoFiClassifier`, with labels standardised by their mean and deviation.

    Parameters
    ----------
    signal, depth, reduce, width, activation, first_moment
        Same as in :class:`BackLoFiClassifier`.
    n_passes, fraction, amplitude, drop, damping
        Same as in :class:`BackLoFiClassifier`.
    scaling, held_back, regularisation, random_state
        Same as in :class:`BackLoFiClassifier`; a fraction ``held_back`` is drawn from all rows.

    Attributes
    ----------
    history_, best_pass_, stopped_reason_, held_back_rows_, layers_, readout_
        Same as in :class:`BackLoFiClassifier`; errors in units of the label's variance.

    Raises
    ------
    InvalidParameter, InvalidData, NotConverged
        From ``fit``.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((300, 5))
    >>> model = BackLoFiRegressor(depth=2, reduce=3, width=50, fraction=0.0).fit(X, X[:, 0] ** 2)
    >>> model.stopped_reason_
    'no column is to be replaced'
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> BackLoFiRegressor:
        """Fit the forward filters, then couple the layers backwards."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        labels = np.asarray(y, dtype=np.float64)
        self.code_ = self._train(X, labels, 0)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict labels."""
        outputs = self._outputs(X)[:, 0]
        return np.asarray(outputs * self.code_.deviation + self.code_.mean)


def _misclassified(outputs: np.ndarray, targets: np.ndarray) -> float:
    return float(np.mean(chosen_classes(outputs) != chosen_classes(targets)))


def _not_classes(outputs: np.ndarray, targets: np.ndarray) -> float:
    return float("nan")


def _class_counts(codes: np.ndarray, n_classes: int) -> np.ndarray:
    counts = np.bincount(codes, minlength=n_classes)
    if not counts.all():
        raise InvalidData(
            f"{np.count_nonzero(counts == 0)} of {n_classes} classes have held-back rows only; allowed: "
            "every class among the fitted rows. Shuffle the rows, or give held_back as a fraction."
        )
    return counts


def _checked_sizes(estimator: _BackLoFi) -> tuple[list[int], list[int]]:
    """Check all hyper-parameters, and return reductions and widths of each layer."""
    scalings = ("columns", "global", "none")
    for name, allowed in (("signal", SIGNALS), ("drop", DROPS), ("scaling", scalings)):
        value = getattr(estimator, name)
        if not isinstance(value, str) or value not in allowed:
            raise InvalidParameter(unknown_choice(name, value, allowed))
    check_activation(estimator.activation)
    if estimator.activation == "step":
        raise InvalidParameter(
            "activation is 'step', whose derivative is 0, so there is no backward signal; allowed: any "
            "other activation."
        )
    check_integer("depth", estimator.depth, 2)
    check_integer("n_passes", estimator.n_passes, 0)
    _check_real("fraction", estimator.fraction, 0, 0.5)
    _check_real("amplitude", estimator.amplitude, 0, np.inf, open_below=True)
    _check_real("damping", estimator.damping, 0, 1, open_below=True)
    if isinstance(estimator.held_back, (float, np.floating)):
        _check_real("held_back", estimator.held_back, 0, 0.9)
    else:
        check_integer("held_back", estimator.held_back, 0)
    if not isinstance(estimator.first_moment, (bool, np.bool_)):
        raise InvalidParameter(f"first_moment is {estimator.first_moment!r}; allowed: True, False.")
    reduce = _per_layer("reduce", estimator.reduce, estimator.depth)
    return reduce, _per_layer("width", estimator.width, estimator.depth)


def split_rows(
    groups: np.ndarray, held_back: float | int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Split into rows to fit and held-back rows: a fraction of each group, or the last rows."""
    n = len(groups)
    if not isinstance(held_back, (float, np.floating)):
        if held_back > n - 2:
            raise InvalidParameter(f"held_back is {held_back} rows of {n}; allowed: up to {n - 2}.")
        return np.arange(n - held_back), np.arange(n - held_back, n)
    return stratified_split(groups, float(held_back), random_stream(seed, "held back"))


def _per_layer(name: str, value: Any, depth: int) -> list[int]:
    entries = list(value) if isinstance(value, (tuple, list, np.ndarray)) else [value] * depth
    if len(entries) != depth:
        raise InvalidParameter(
            f"{name} has {len(entries)} entries for depth {depth}; allowed: one entry per layer, or one "
            "number for all layers."
        )
    for entry in entries:
        check_integer(name, entry, 1)
    return [int(entry) for entry in entries]


def _check_real(
    name: str, value: Any, least: float, most: float, *, open_below: bool = False
) -> None:
    if (
        not is_real(value)
        or not least <= value <= most
        or not np.isfinite(value)
        or (open_below and value == least)
    ):
        below = "above" if open_below else "from"
        raise InvalidParameter(f"{name} is {value!r}; allowed: a number {below} {least} to {most}.")
