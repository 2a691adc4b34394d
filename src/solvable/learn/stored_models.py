"""Store and load the model that `solvable learn` names, as arrays and JSON that cannot execute code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor

from solvable.errors import InvalidParameter
from solvable.fitting.described_arrays import (
    checked,
    checked_number,
    checked_outputs,
    from_words,
    read_described,
    under,
    valid_content,
    write_described,
)
from solvable.fitting.kernel_classifier import KERNELS, RbfClassifier, RbfRegressor
from solvable.fitting.ridge import RidgeFit
from solvable.learn.blend import BlendClassifier, BlendRegressor
from solvable.learn.calibration import Calibration
from solvable.learn.competitors import MultiIndexClassifier
from solvable.learn.design import constant_model
from solvable.learn.fold_fits import outputs_of
from solvable.learn.kernels_of_columns import KERNELS as COLUMN_KERNELS
from solvable.learn.metric_kernel import Member, MetricKernelClassifier, MetricKernelRegressor
from solvable.learn.tree_arrays import TreeArrays
from solvable.learn.trees import TreesClassifier, TreesRegressor
from solvable.models.multi_index.learner import MultiIndexRegressor
from solvable.models.multi_index.readout import Readout
from solvable.networks.files import ESTIMATORS, FORMATS, model_from, model_parts
from solvable.networks.stored_layers import layer_from_parts, layer_parts

FORMAT = "solvable-learn-model-1"  # name and version of the format of models other than networks

BLENDS: dict[str, type] = {one.__name__: one for one in (BlendRegressor, BlendClassifier)}

Arrays = Mapping[str, np.ndarray]
Parts = tuple[dict[str, np.ndarray], dict[str, Any]]


class Kind(NamedTuple):
    """Estimator that can be stored, and the functions that take it apart and put it together."""

    estimator: type
    parts: Callable[[Any], Parts]
    made: Callable[[type, Arrays, Mapping[str, Any]], Any]


def save_fitted(model: Any, path: str | Path, *, notes: Mapping[str, Any] | None = None) -> Path:
    """Write a fitted model of any kind that is compared; networks keep the format of `save_model`."""
    arrays, content = _parts(model)
    return write_described(path, arrays, content | {"notes": dict(notes or {})})


def _parts(model: Any) -> Parts:
    """Return the arrays and the description of a fitted model of any kind."""
    name = type(model).__name__
    if name in ESTIMATORS:
        return model_parts(model)
    if name not in KINDS:
        allowed = ", ".join([*ESTIMATORS, *KINDS])
        raise InvalidParameter(f"model is {model!r}; allowed: a fitted {allowed}.")
    arrays, described = KINDS[name].parts(model)
    if hasattr(model, "classes_"):
        arrays["classes"] = np.asarray(model.classes_)
    return arrays, {"format": FORMAT, "estimator": name, "model": described}


def load_fitted(path: str | Path) -> tuple[Any, dict[str, Any]]:
    """Load a fitted model and its notes; files of earlier versions hold a network."""
    arrays, content = read_described(path, (FORMAT, *FORMATS), "`solvable learn`")
    with valid_content(path, "a model", "Fit it again with `solvable learn`."):
        model = _made(arrays, content)
        for outputs in (model.predict, partial(outputs_of, model)):
            checked_outputs(model, outputs)
        return model, dict(content.get("notes", {}))


def _made(arrays: Arrays, content: Mapping[str, Any]) -> Any:
    """Put a model together from its arrays and description."""
    if content["format"] in FORMATS:
        return model_from(arrays, content)
    name = content["estimator"]
    if content["format"] != FORMAT or name not in KINDS:
        raise ValueError(f"estimator {name!r}")
    kind = KINDS[name]
    model = kind.made(kind.estimator, arrays, content["model"])
    if "classes" in arrays:
        checked(arrays["classes"], (None,), "fiubU")
        model.classes_ = arrays["classes"]
    model.n_features_in_ = int(content["model"]["columns"])
    return model


def _of_kernel(model: RbfRegressor | RbfClassifier) -> Parts:
    arrays = {
        "samples": model._samples,
        "coefficients": model.readout_.coefficients,
        "intercept": model.readout_.intercept,
    }
    described: dict[str, Any] = {
        "kernel": model.kernel_,
        "bandwidth": model.bandwidth_,
        "median": model._median,
        "columns": model._samples.shape[1],
    }
    return _with_scale(model, arrays, described)


def _with_scale(model: Any, arrays: dict[str, np.ndarray], described: dict[str, Any]) -> Parts:
    """Add the scale of the columns, if the model has one."""
    described["scale"] = None
    if model._scale is not None:
        parts, described["scale"] = layer_parts(model._scale)
        arrays |= {f"scale.{name}": array for name, array in parts.items()}
    return arrays, described


def _kernel(estimator: type, arrays: Arrays, described: Mapping[str, Any]) -> Any:
    model = estimator()
    n, d = checked(arrays["samples"], (None, int(described["columns"]))).shape
    outputs = 1 if estimator is RbfRegressor else len(checked(arrays["classes"], (None,), "fiubU"))
    checked(arrays["coefficients"], (n, outputs))
    checked(arrays["intercept"], (outputs,))
    model.kernel_, model._samples = described["kernel"], arrays["samples"]
    if model.kernel_ not in KERNELS:
        raise ValueError(f"kernel {model.kernel_!r}")
    model.bandwidth_ = checked_number(described["bandwidth"], 1e-300)
    model._median = checked_number(described["median"], 1e-300)
    model._scale = _stored_scale(arrays, described, d)
    nan = float("nan")
    model.readout_ = RidgeFit(arrays["coefficients"], arrays["intercept"], nan, nan, nan)
    return model


def _of_members(model: MetricKernelRegressor | MetricKernelClassifier) -> Parts:
    arrays = {"samples": model._samples}
    described: dict[str, Any] = {"columns": model._samples.shape[1], "members": []}
    for number, one in enumerate(model.members_):
        described["members"].append({"kernel": one.kernel, "size": one.size})
        for name in ("scales", "coefficients", "intercept"):
            arrays[f"{number}.{name}"] = getattr(one, name)
    return _with_scale(model, arrays, described)


def _members(estimator: type, arrays: Arrays, described: Mapping[str, Any]) -> Any:
    model = estimator()
    n, d = checked(arrays["samples"], (None, int(described["columns"]))).shape
    outputs = (
        1
        if estimator is MetricKernelRegressor
        else len(checked(arrays["classes"], (None,), "fiubU"))
    )
    shapes = {"scales": (d,), "coefficients": (n, outputs), "intercept": (outputs,)}
    members = []
    for number, row in enumerate(described["members"]):
        own = under(arrays, f"{number}.")
        if row["kernel"] not in COLUMN_KERNELS:
            raise ValueError(f"kernel {row['kernel']!r}")
        parts = {name: checked(own[name], shape) for name, shape in shapes.items()}
        members.append(Member(row["kernel"], checked_number(row["size"], 1e-300), **parts))
    if not members:
        raise ValueError("no member")
    model.members_, model._samples = tuple(members), arrays["samples"]
    model._scale = _stored_scale(arrays, described, d)
    return model


def _stored_scale(arrays: Arrays, described: Mapping[str, Any], d: int) -> Any:
    """Return the layer that scales the columns; None if the model has none."""
    if described["scale"] is None:
        return None
    scale = layer_from_parts(under(arrays, "scale."), described["scale"])
    checked(scale.apply(np.zeros((1, d))), (1, d))
    return scale


def _of_trees(model: TreesRegressor | TreesClassifier) -> Parts:
    trees = model.as_arrays()
    described: dict[str, Any] = {"columns": trees.n_columns}
    if isinstance(model, TreesRegressor):
        described |= {"mean": model.mean_, "deviation": model.deviation_}
    return {f"trees.{name}": array for name, array in trees.arrays().items()}, described


def _trees(estimator: type, arrays: Arrays, described: Mapping[str, Any]) -> Any:
    model = estimator()
    trees = TreeArrays.checked(under(arrays, "trees."))
    model.models_ = [trees]
    checked(trees.order, (int(described["columns"]),))
    outputs = trees.baseline.size
    if estimator is TreesRegressor:
        model.mean_, model.deviation_ = float(described["mean"]), float(described["deviation"])
        classes = 1
    else:
        classes = len(checked(arrays["classes"], (None,), "fiubU"))
    if outputs != (1 if classes == 2 else classes):
        raise ValueError(f"{outputs} outputs of the trees for {classes} classes")
    return model


def _of_directions(model: MultiIndexRegressor | MultiIndexClassifier) -> Parts:
    arrays: dict[str, np.ndarray] = {}
    models = [model] if isinstance(model, MultiIndexRegressor) else model.models_
    described: list[dict[str, Any]] = []
    for number, one in enumerate(models):
        arrays |= {f"{number}.mean": one.mean_, f"{number}.components": one.components_}
        row: dict[str, Any] = {
            "intercept": one.intercept_,
            "whiten": one.whiten,
            "shrinkage": one.shrinkage_,
            "kinds": list(one.kinds_) if len(one.components_) else [],
            "readout": None,
        }
        if one.readout_ is not None:
            row["readout"] = {
                name: getattr(one.readout_, name)
                for name in ("kind", "intercept", "penalty", "degrees_of_freedom")
            }
            arrays[f"{number}.coefficients"] = one.readout_.coefficients
            if one.readout_.first_layer is not None:
                arrays[f"{number}.neurons"] = one.readout_.first_layer
        described.append(row)
    return arrays, {"columns": models[0].n_features_in_, "models": described}


def _directions(estimator: type, arrays: Arrays, described: Mapping[str, Any]) -> Any:
    d, models = int(described["columns"]), []
    for number, row in enumerate(described["models"]):
        own = under(arrays, f"{number}.")
        one = MultiIndexRegressor(whiten=row["whiten"])
        one.n_features_in_, one.shrinkage_ = d, float(row["shrinkage"])
        one.mean_, one.components_ = (
            checked(own["mean"], (d,)),
            checked(own["components"], (None, d)),
        )
        one.kinds_, one.intercept_ = tuple(row["kinds"]), float(row["intercept"])
        k = one._n_features_out = len(one.components_)
        one.readout_ = None
        if row["readout"] is not None:
            kept = from_words(row["readout"])
            neurons = own.get("neurons")
            if (neurons is None) != (kept["kind"] == "monomials"):
                raise ValueError(f"neurons of a readout of kind {kept['kind']!r}")
            if neurons is not None:
                checked(neurons, (len(own["coefficients"]), k + 1))
            one.readout_ = Readout(
                kept.pop("kind"), neurons, checked(own["coefficients"], (None,)), **kept
            )
        models.append(one)
    if estimator is MultiIndexRegressor:
        (only,) = models
        return only
    classes = len(checked(arrays["classes"], (None,), "fiubU"))
    if len(models) != (1 if classes == 2 else classes):
        raise ValueError(f"{len(models)} learners for {classes} classes")
    model = MultiIndexClassifier()
    model.models_ = models
    return model


def _of_constant(model: DummyRegressor | DummyClassifier) -> Parts:
    if isinstance(model, DummyRegressor):
        arrays = {"constant": np.asarray(model.constant_, dtype=np.float64).reshape(-1)}
    else:
        arrays = {"shares": np.asarray(model.class_prior_, dtype=np.float64)}
    return arrays, {"columns": model.n_features_in_}


def _constant(estimator: type, arrays: Arrays, _: Mapping[str, Any]) -> Any:
    model = constant_model(estimator is DummyRegressor)
    if estimator is DummyRegressor:
        y = checked(arrays["constant"], (1,))
        model.fit(np.zeros((1, 1)), y)
    else:
        shares = checked(arrays["shares"], (len(checked(arrays["classes"], (None,), "fiubU")),))
        model.fit(np.zeros((len(shares), 1)), arrays["classes"], sample_weight=shares)
    return model


def _of_blend(model: BlendRegressor | BlendClassifier) -> Parts:
    arrays, described = {"weights": model.weights_}, []
    for number, one in enumerate(model.members_):
        parts, content = _parts(one)
        arrays |= {f"{number}.{name}": array for name, array in parts.items()}
        described.append(content)
    calibrations = [one.to_dict() for one in model.calibrations_]
    columns = model.n_features_in_
    return arrays, {"columns": columns, "members": described, "calibrations": calibrations}


def _blend(estimator: type, arrays: Arrays, described: Mapping[str, Any]) -> Any:
    rows = described["members"]
    if any(row["estimator"] in BLENDS for row in rows):
        raise ValueError("a blend of blends")
    members = tuple(_made(under(arrays, f"{i}."), row) for i, row in enumerate(rows))
    weights = checked(arrays["weights"], (len(members),))
    calibrations = tuple(Calibration.from_dict(one) for one in described["calibrations"])
    d = int(described["columns"])
    if not members or any(one.n_features_in_ != d for one in members):
        raise ValueError(f"{len(members)} members, or members of other columns")
    if estimator is BlendClassifier:
        classes = len(checked(arrays["classes"], (None,), "fiubU"))
        lengths = [len(one.slopes) for one in calibrations]
        if lengths != [1 if classes == 2 else classes] * len(members):
            raise ValueError(f"calibrations of {lengths} outputs for {classes} classes")
    return estimator()._of(d, members, weights, calibrations)


KINDS: dict[str, Kind] = {
    estimator.__name__: Kind(estimator, parts, made)
    for estimators, parts, made in (
        ((RbfRegressor, RbfClassifier), _of_kernel, _kernel),
        ((MetricKernelRegressor, MetricKernelClassifier), _of_members, _members),
        ((TreesRegressor, TreesClassifier), _of_trees, _trees),
        ((MultiIndexRegressor, MultiIndexClassifier), _of_directions, _directions),
        ((DummyRegressor, DummyClassifier), _of_constant, _constant),
        (BLENDS.values(), _of_blend, _blend),
    )
    for estimator in estimators
}
"""Kinds of models other than networks, by the name of the estimator."""
