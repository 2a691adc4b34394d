"""Fully connected network trained by gradient descent, a baseline for filters (extra torch)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from solvable.arrays import is_integer, is_real, random_stream
from solvable.errors import InvalidData, InvalidParameter, unknown_choice
from solvable.fitting.devices import import_torch
from solvable.fitting.inputs import by_blocks, seed_from, validate_data
from solvable.networks.base import chosen_classes, standardise_columns, stratified_split
from solvable.networks.gradient_training import (
    TRAINABLE,
    Loss,
    TrainingSettings,
    train_network,
)
from solvable.operators.activations import evaluate


class _GradientNetwork(BaseEstimator):
    """Base class of the trained classifier and regressor."""

    def __init__(
        self,
        widths: Sequence[int] = (1000, 1000),
        *,
        activation: str = "relu",
        optimiser: Literal["adam", "sgd"] = "adam",
        step_size: float | Literal["auto"] = "auto",
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        batch_size: int | None = 128,
        max_epochs: int = 200,
        validation: float = 0.1,
        patience: int = 20,
        scaling: Literal["columns", "global", "none"] = "columns",
        device: str = "cpu",
        random_state: Any = 0,
    ) -> None:
        self.widths = widths
        self.activation = activation
        self.optimiser = optimiser
        self.step_size = step_size
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.validation = validation
        self.patience = patience
        self.scaling = scaling
        self.device = device
        self.random_state = random_state

    def _fit(self, X: np.ndarray, targets: np.ndarray, groups: np.ndarray, loss: Loss) -> None:
        """Train on scaled inputs; the validation split takes the same fraction of each group."""
        self._check_parameters()
        import_torch()
        seed = seed_from(self.random_state)
        # Split into rows for gradient steps and rows that decide when to stop.
        kept, apart = stratified_split(groups, self.validation, random_stream(seed, "validation"))
        self.scaling_ = standardise_columns(X[kept], self.scaling)
        trained = train_network(
            self._scaled(X),
            targets,
            kept,
            apart,
            TrainingSettings(
                widths=tuple(int(width) for width in self.widths),
                activation=self.activation,
                loss=loss,
                optimiser=self.optimiser,
                step_size=self.step_size,
                momentum=float(self.momentum),
                weight_decay=float(self.weight_decay),
                batch_size=self.batch_size,
                max_epochs=int(self.max_epochs),
                patience=int(self.patience),
                device=self.device,
                seed=seed,
            ),
        )
        self.weights_, self.biases_ = trained.weights, trained.biases
        self.history_, self.best_epoch_ = trained.history, trained.best_epoch
        self.stopped_reason_, self.step_size_ = trained.stopped_reason, trained.step_size

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        return X if self.scaling_ is None else self.scaling_.apply(X)

    def _outputs(self, X: np.ndarray) -> np.ndarray:
        """Outputs of the network, computed by NumPy in double precision, without torch."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)

        def outputs(rows: np.ndarray) -> np.ndarray:
            hidden: Any = self._scaled(rows)
            for weights, bias in zip(self.weights_[:-1], self.biases_[:-1], strict=True):
                hidden = evaluate(self.activation, hidden @ weights + bias)
            return np.asarray(hidden @ self.weights_[-1] + self.biases_[-1])

        return by_blocks(outputs, X, 4096)

    def _check_parameters(self) -> None:
        for name, allowed in (
            ("activation", TRAINABLE),
            ("optimiser", ("adam", "sgd")),
            ("scaling", ("columns", "global", "none")),
        ):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in allowed:
                raise InvalidParameter(unknown_choice(name, value, allowed))
        if not isinstance(self.widths, (tuple, list)) or not all(map(is_integer, self.widths)):
            raise InvalidParameter(
                f"widths is {self.widths!r}; allowed: a tuple of integers of at least 1, one per "
                "hidden layer."
            )
        for name in ("max_epochs", "patience", "batch_size"):
            value = getattr(self, name)
            if not is_integer(value) and not (name == "batch_size" and value is None):
                also = ", or None for all rows" if name == "batch_size" else ""
                raise InvalidParameter(
                    f"{name} is {value!r}; allowed: an integer of at least 1{also}."
                )
        for name, below in (("momentum", 1.0), ("weight_decay", np.inf), ("validation", 0.9)):
            value = getattr(self, name)
            if not is_real(value) or not 0 <= value < below:
                raise InvalidParameter(
                    f"{name} is {value!r}; allowed: a number from 0 to below {below:g}."
                )
        if self.step_size != "auto" and not (
            is_real(self.step_size) and 0 < self.step_size < np.inf
        ):
            raise InvalidParameter(
                f"step_size is {self.step_size!r}; allowed: a finite number above 0, or 'auto'."
            )


class GradientNetworkClassifier(ClassifierMixin, _GradientNetwork):
    r"""Classifier: a fully connected network trained by gradient descent.

    .. math:: f(x)=W_{L+1}^\top\sigma(W_L^\top\cdots\sigma(W_1^\top x+b_1)\cdots+b_L)+b_{L+1},

    from :math:`W_{ij}\sim N(0,g/n_{\rm in})`, g = 2 for ReLU and 1 otherwise, and biases of zero.

    Parameters
    ----------
    widths : tuple of int
        Number of neurons of each hidden layer.
    activation : str
        Activation :math:`\sigma`.
    optimiser : {"adam", "sgd"}
        Adam with decoupled weight decay, or plain gradient descent.
    step_size : float or "auto"
        "auto": 0.001 for Adam; for "sgd" the inverse of the mean squared gradient of the outputs at
        initialisation, below which a full step cannot overshoot in the linear regime.
    momentum : float
        Momentum of "sgd", from 0 to below 1.
    weight_decay : float
        Weight decay, at least 0.
    batch_size : int or None
        Rows per step; None for all rows.
    max_epochs : int
        Largest number of passes over the rows.
    validation : float
        Fraction of the rows (of each class) that is used for validation only.
    patience : int
        Number of epochs without a lower validation loss after which training ends. The weights of the
        best epoch are kept.
    scaling : {"columns", "global", "none"}
        Standardise each column, all columns by one mean and deviation, or nothing.
    device : str
        Device of the training in torch's notation, for example ``"cpu"`` or ``"cuda"``.
    random_state : int, RandomState, Generator or None
        Seed of weights, order and validation rows. The same seed gives the same network on the same
        machine with the same number of threads.
    loss : {"cross-entropy", "squared"}
        Loss; "squared" uses targets -1 and 1 (one output), or 0 and 1 (one output per class).

    Attributes
    ----------
    weights_, biases_ : list of ndarray
        Weights and biases of each layer; predictions do not need torch.
    history_ : tuple of Epoch
        Losses of each epoch.
    best_epoch_ : int
        Epoch whose weights are kept.
    stopped_reason_ : str
        Reason why training ended.
    step_size_ : float
        Step size in use.
    classes_ : ndarray
        Class labels.

    Raises
    ------
    InvalidParameter
        From ``fit``: a parameter out of range, or torch is not installed.
    InvalidData
        From ``fit``: one class only.
    NotConverged
        From ``fit``: the loss exceeds :data:`DIVERGED` times that of a constant prediction, or is not
        finite.

    Notes
    -----
    Time about :math:`6n\sum_\ell p_\ell p_{\ell+1}` flops per epoch, in float32. Baseline of the tables
    in ``docs/backlofi.md``. Tested in ``tests/networks/test_gradient_network.py``.

    Examples
    --------
    >>> GradientNetworkClassifier(widths=(50,), optimiser="sgd").get_params()["momentum"]
    0.0
    """

    def __init__(
        self,
        widths: Sequence[int] = (1000, 1000),
        *,
        activation: str = "relu",
        optimiser: Literal["adam", "sgd"] = "adam",
        step_size: float | Literal["auto"] = "auto",
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        batch_size: int | None = 128,
        max_epochs: int = 200,
        validation: float = 0.1,
        patience: int = 20,
        scaling: Literal["columns", "global", "none"] = "columns",
        device: str = "cpu",
        random_state: Any = 0,
        loss: Literal["cross-entropy", "squared"] = "cross-entropy",
    ) -> None:
        super().__init__(
            widths,
            activation=activation,
            optimiser=optimiser,
            step_size=step_size,
            momentum=momentum,
            weight_decay=weight_decay,
            batch_size=batch_size,
            max_epochs=max_epochs,
            validation=validation,
            patience=patience,
            scaling=scaling,
            device=device,
            random_state=random_state,
        )
        self.loss = loss

    def fit(self, X: np.ndarray, y: np.ndarray) -> GradientNetworkClassifier:
        """Train the network."""
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, encoded = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidData("y holds 1 class; allowed: at least two classes.")
        if not isinstance(self.loss, str) or self.loss not in ("cross-entropy", "squared"):
            raise InvalidParameter(unknown_choice("loss", self.loss, ["cross-entropy", "squared"]))
        targets: np.ndarray = np.eye(len(self.classes_))[encoded]
        if len(self.classes_) == 2:
            targets = 2.0 * encoded[:, None] - 1
        self._fit(X, targets, encoded, self.loss)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict classes."""
        chosen = chosen_classes(self._outputs(X))
        return np.asarray(self.classes_[chosen])


class GradientNetworkRegressor(RegressorMixin, _GradientNetwork):
    r"""Fully connected network trained by gradient descent on the squared error.

    .. math:: \frac1n\sum_\mu(y_\mu-f(x_\mu))^2,\qquad
        f(x)=W_{L+1}^\top\sigma(W_L^\top\cdots\sigma(W_1^\top x+b_1)\cdots+b_L)+b_{L+1}.

    Labels are standardised for training. Everything else is as in
    :class:`GradientNetworkClassifier`, whose parameters except ``loss`` apply here too.

    Parameters
    ----------
    widths, activation, optimiser, step_size, momentum, weight_decay
        Same as in :class:`GradientNetworkClassifier`.
    batch_size, max_epochs, validation, patience, scaling, device, random_state
        Same as in :class:`GradientNetworkClassifier`; validation rows are drawn from all rows.

    Attributes
    ----------
    weights_, biases_, history_, best_epoch_, stopped_reason_, step_size_
        Same as in :class:`GradientNetworkClassifier`; losses in units of the label's variance.

    Raises
    ------
    InvalidParameter, NotConverged
        In the same cases as :class:`GradientNetworkClassifier`.

    Examples
    --------
    >>> GradientNetworkRegressor(widths=(50, 50)).get_params()["validation"]
    0.1
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> GradientNetworkRegressor:
        """Train the network."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        labels = np.asarray(y, dtype=np.float64)
        self.label_mean_, self.label_scale_ = float(labels.mean()), float(labels.std()) or 1.0
        targets = (labels[:, None] - self.label_mean_) / self.label_scale_
        self._fit(X, targets, np.zeros(len(labels)), "squared")
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict labels."""
        return np.asarray(self._outputs(X)[:, 0] * self.label_scale_ + self.label_mean_)
