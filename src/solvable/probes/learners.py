"""Learners of a probe: built in, of scikit-learn, of torch, or a user's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from solvable.errors import InvalidData, InvalidParameter, unknown_choice
from solvable.models.hierarchy.grammar.learner.convolutional import HierarchicalCNN
from solvable.models.hierarchy.grammar.learner.transformer import TransformerClassifier
from solvable.models.multi_index.learner import MultiIndexRegressor
from solvable.models.sequential.estimator.learner import LayerwiseSpectralRegressor
from solvable.networks.lofi import NeuralLoFiRegressor
from solvable.paths import error_line
from solvable.probes.kernel import RidgeKernel
from solvable.probes.multilayer import MultilayerPerceptron
from solvable.probes.named_objects import imported
from solvable.probes.torch_recipe import TorchLearner

Kind = Literal["numbers", "classes", "labels"]
"""Kind of prediction: one number a row, a class with probabilities, or many numbers a row."""


@dataclass(frozen=True)
class Task:
    """Shape of the data and facts of the target that a learner is made for."""

    kind: Kind
    n_inputs: int  # columns of X; one-hot symbols for strings
    n_outputs: int
    n_features: int  # hidden features of the target, which spectral learners are given
    degree: int  # degree of the features that `spectral` looks for; 0 for single directions
    branching: int  # symbols of a tuple, for strings
    vocabulary: int  # symbols, for strings
    seed: int


def _perceptron(task: Task, widths: tuple[int, ...], **options: Any) -> Any:
    return MultilayerPerceptron(widths, classes=task.kind == "classes", seed=task.seed, **options)


def _mlp(task: Task) -> Any:
    # One hidden layer does not represent products of quadratic features.
    if task.degree == 2:
        return _perceptron(task, (256, 256), weight_decay=0.3, steps=12_000)
    return _perceptron(task, (256,), initial_scale=0.1, step_size=2e-3)


def _trees(task: Task) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = (
        HistGradientBoostingClassifier if task.kind == "classes" else HistGradientBoostingRegressor
    )
    return kind(max_iter=500, early_stopping=True, random_state=task.seed)


def _random_features(task: Task) -> Any:
    return RidgeKernel("random-features", seed=task.seed)


def _spectral(task: Task) -> Any:
    if task.degree:
        return LayerwiseSpectralRegressor(
            task.degree, n_directions=task.n_features, selection="forced", held_back=0.2,
            readout="none", cross_terms=False, random_state=task.seed,
        )  # fmt: skip
    return MultiIndexRegressor(task.n_features, random_state=task.seed)


def _lofi(task: Task) -> Any:
    return NeuralLoFiRegressor(random_state=task.seed)


def _cnn(task: Task) -> Any:
    return HierarchicalCNN(task.branching, vocabulary=task.vocabulary, random_state=task.seed)


def _transformer(task: Task) -> Any:
    return TransformerClassifier(task.branching, vocabulary=task.vocabulary, random_state=task.seed)


@dataclass(frozen=True)
class BuiltIn:
    """A learner of the probe."""

    make: Callable[[Task], Any]
    description: str
    kinds: tuple[Kind, ...] = ("numbers", "classes", "labels")
    strings: bool = False  # reads symbols instead of one-hot columns


BUILT_IN: Mapping[str, BuiltIn] = {
    "mlp": BuiltIn(
        _mlp, "one ReLU layer of 256, initial weights times 0.1, Adam 0.002 (for features of degree 2: "
        "two layers, decay 0.3, 12,000 steps)"
    ),
    "mlp-small-start": BuiltIn(
        lambda task: _perceptron(task, (256, 256), initial_scale=0.1),
        "two ReLU layers of 256, initial weights times 0.1, Adam 0.001",
    ),
    "mlp-large-start": BuiltIn(
        lambda task: _perceptron(task, (256, 256)), "two ReLU layers of 256, usual start, Adam 0.001"
    ),
    "mlp-decay": BuiltIn(
        lambda task: _perceptron(task, (256, 256), weight_decay=0.3),
        "two ReLU layers of 256, usual start, Adam 0.001, weight decay 0.3",
    ),
    "boosted-trees": BuiltIn(
        _trees, "scikit-learn's histogram boosting, up to 500 trees", ("numbers", "classes")
    ),
    "rbf-kernel": BuiltIn(
        lambda task: RidgeKernel(), "Gaussian kernel exp(-|x-x'|²/2d), ridge by leave-one-out",
        ("numbers", "labels"),
    ),
    "random-features": BuiltIn(
        _random_features, "2,000 random ReLU features, ridge by leave-one-out", ("numbers", "labels")
    ),
    "spectral": BuiltIn(
        _spectral, "spectral learner of the target, given the number of features", ("numbers",)
    ),
    "lofi": BuiltIn(_lofi, "Neural LoFi with its default blocks", ("numbers",)),
    "cnn": BuiltIn(_cnn, "convolutional network of the grammar's tree", ("classes",), strings=True),
    "transformer": BuiltIn(
        _transformer, "transformer on the symbols (extra torch)", ("classes",), strings=True
    ),
}  # fmt: skip
"""Learners of the probe, by name."""


def check_learner(name: str, kind: Kind) -> None:
    """Refuse an unknown learner, or one that does not fit the target, before anything is measured."""
    if ":" in name:
        found = imported(name, "learner")
        usable = callable(found) or _is_module(found) or hasattr(found, "fit")
        if not usable or inspect.ismodule(found):
            raise InvalidParameter(_refused(name, found))
        return
    if name not in BUILT_IN:
        raise InvalidParameter(
            f"{unknown_choice('learner', name, list(BUILT_IN))} Or module:name of an own learner."
        )
    if kind not in BUILT_IN[name].kinds:
        fits = ", ".join(key for key, built in BUILT_IN.items() if kind in built.kinds)
        raise InvalidParameter(
            f"learner is {name!r}, which does not predict {kind}; allowed for this target: {fits}."
        )


def make_learner(name: str, task: Task) -> Any:
    """Return an unfitted learner with ``fit`` and ``predict``."""
    if ":" not in name:
        return BUILT_IN[name].make(task)
    found = imported(name, "learner")
    if not hasattr(found, "fit") or inspect.isclass(found):
        found = _called(found, name, task)
    if type(found).__module__.startswith("torch") or _is_module(found):
        return TorchLearner(found, classes=task.kind == "classes", seed=task.seed)
    if not (hasattr(found, "fit") and hasattr(found, "predict")):
        raise InvalidParameter(_refused(name, found))
    if hasattr(found, "get_params"):
        from sklearn.base import clone

        found = clone(found)
        if "random_state" in found.get_params() and found.get_params()["random_state"] is None:
            found.set_params(random_state=task.seed)
    return found


def _refused(name: str, found: Any) -> str:
    """Say why an object is no learner."""
    missing = [method for method in ("fit", "predict") if not hasattr(found, method)]
    return (
        f"learner {name.removeprefix('given:')!r} is a {type(found).__name__} without "
        f"{' and '.join(missing)}; allowed: an estimator with fit and predict, a torch module, or a "
        "function that returns one."
    )


def _is_module(value: Any) -> bool:
    return any(base.__module__.startswith("torch.nn") for base in type(value).__mro__)


def _called(made: Any, name: str, task: Task) -> Any:
    """Call a class or function, with the numbers of inputs and outputs if it requires arguments."""
    if not callable(made):
        raise InvalidParameter(_refused(name, made))
    try:
        required = [
            p for p in inspect.signature(made).parameters.values()
            if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]  # fmt: skip
    except ValueError:
        required = []
    if len(required) > 2:
        raise InvalidParameter(
            f"learner {name!r} requires {len(required)} arguments; allowed: none, the number of inputs, "
            "or the numbers of inputs and outputs."
        )
    try:
        return made(*(task.n_inputs, task.n_outputs)[: len(required)])
    except Exception as error:  # a user's function may raise anything
        raise InvalidParameter(
            f"learner {name!r} raised {error_line(error)}; allowed: a class or function that returns an "
            "estimator or a torch module."
        ) from error


def predictions(learner: Any, X: np.ndarray, task: Task) -> np.ndarray:
    """Predict numbers, or probabilities of all classes, and check their shape."""
    if task.kind == "classes":
        if not hasattr(learner, "predict_proba"):
            raise InvalidParameter(
                f"{type(learner).__name__} has no predict_proba; allowed for this target: a classifier "
                "with probabilities."
            )
        found = np.asarray(learner.predict_proba(X), dtype=np.float64)
        whole = np.zeros((len(X), task.n_outputs))
        classes = np.asarray(getattr(learner, "classes_", np.arange(found.shape[-1])), dtype=int)
        if found.shape != (len(X), len(classes)):
            raise InvalidData(
                f"{type(learner).__name__} predicts an array of shape {found.shape} for {len(X)} rows; "
                f"allowed: ({len(X)}, {len(classes)})."
            )
        whole[:, classes] = found
        return whole
    found = np.asarray(learner.predict(X), dtype=np.float64)
    wanted = (len(X),) if task.kind == "numbers" else (len(X), task.n_outputs)
    if found.shape == (len(X), 1) and task.kind == "numbers":
        found = found[:, 0]
    if found.shape != wanted:
        raise InvalidData(
            f"{type(learner).__name__} predicts an array of shape {found.shape} for {len(X)} rows; "
            f"allowed: {wanted}."
        )
    if not np.isfinite(found).all():
        raise InvalidData(
            f"{type(learner).__name__} predicts values that are not finite; allowed: finite numbers."
        )
    return found
