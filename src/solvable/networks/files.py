"""Store and load fitted networks in files that cannot execute code."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from solvable.errors import InvalidParameter
from solvable.fitting.described_arrays import (
    checked_outputs,
    from_words,
    read_described,
    valid_content,
    write_described,
)
from solvable.fitting.ridge import RidgeFit
from solvable.networks.blocks import Block, LabelCode
from solvable.networks.layers import Lift, Network
from solvable.networks.lofi import (
    NeuralLoFiClassifier,
    NeuralLoFiRegressor,
    NeuralLoFiTransformer,
)
from solvable.networks.stored_layers import network_from_parts, network_parts

FORMAT = "solvable-lofi-2"  # name and version of the file format that is written

FORMATS = (FORMAT, "solvable-lofi-1")
"""Formats that can be read; the first version has no biases of lifts."""

ORIGIN = "solvable.learners.save_model"

ESTIMATORS: dict[str, type] = {
    estimator.__name__: estimator
    for estimator in (NeuralLoFiTransformer, NeuralLoFiRegressor, NeuralLoFiClassifier)
}
"""Estimators that a file may contain, by their name in the file."""


def save_model(model: Any, path: str | Path, *, notes: Mapping[str, Any] | None = None) -> Path:
    """Store a fitted estimator as safetensors: arrays and JSON, no code.

    Parameters
    ----------
    model : NeuralLoFiTransformer, NeuralLoFiRegressor or NeuralLoFiClassifier
        Fitted estimator.
    path : str or Path
        File to write; an existing file is replaced in one step.
    notes : mapping, optional
        Additional JSON data stored with the model, such as names and preparation of columns.

    Returns
    -------
    Path
        The file, which includes a digest of its content.

    Raises
    ------
    InvalidParameter
        If the model is of another kind or not fitted.
    StorageFailed
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from solvable.learners import Block, NeuralLoFiRegressor, load_model
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> model = NeuralLoFiRegressor([Block(width=20)], random_state=0).fit(X, X[:, 0])
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     other = load_model(save_model(model, Path(directory) / "model.safetensors"))
    >>> bool(np.array_equal(other.predict(X), model.predict(X)))
    True
    """
    arrays, content = model_parts(model)
    return write_described(path, arrays, content | {"notes": dict(notes or {})})


def model_parts(model: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the description of a fitted estimator, from which `model_from` makes it."""
    name = type(model).__name__
    if name not in ESTIMATORS or not hasattr(model, "network_"):
        raise InvalidParameter(f"model is {model!r}; allowed: a fitted {', '.join(ESTIMATORS)}.")
    layers = list(model.network_.layers)
    if model.network_.readout is not None:
        layers.append(model.network_.readout)
    arrays, described, reports = network_parts(layers, model.filters_)
    content: dict[str, Any] = {
        "format": FORMAT,
        "estimator": name,
        "parameters": _parameters(model),
        "n_features_in": int(model.n_features_in_),
        "layers": described,
        "has_readout": model.network_.readout is not None,
        "filters": reports,
    }
    if model.readout_ is not None:
        content["readout"] = {
            key: float(getattr(model.readout_, key))
            for key in ("penalty", "criterion", "degrees_of_freedom")
        }
    if hasattr(model, "classes_"):
        classes = model.classes_
        content["classes"] = {"values": classes.tolist(), "dtype": classes.dtype.str}
    if hasattr(model, "_code"):
        content["label"] = {"mean": model._code.mean, "deviation": model._code.deviation}
    if hasattr(model, "feature_names_in_"):
        content["feature_names_in"] = [str(name) for name in model.feature_names_in_]
    return arrays, content


def load_model(path: str | Path) -> Any:
    """Load a fitted estimator from a file of :func:`save_model`.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    NeuralLoFiTransformer, NeuralLoFiRegressor or NeuralLoFiClassifier
        Estimator with the same predictions.

    Raises
    ------
    InvalidData
        If the file is missing, truncated, changed since it was written, or not a model.
    """
    arrays, content = read_described(path, FORMATS, ORIGIN)
    with valid_content(path, "a model", "Save it again with solvable.learners.save_model."):
        model = model_from(arrays, content)
        checked_outputs(model, getattr(model, "predict", None) or model.transform)
        return model


def model_notes(path: str | Path) -> dict[str, Any]:
    """Load the mapping that was stored with a model under ``notes``."""
    return dict(read_described(path, FORMATS, ORIGIN)[1].get("notes", {}))


def model_from(arrays: Mapping[str, np.ndarray], content: Mapping[str, Any]) -> Any:
    """Make the estimator from the content of a file of :func:`save_model`."""
    if content["estimator"] not in ESTIMATORS:
        raise ValueError(f"estimator {content['estimator']!r}")
    parameters = dict(content["parameters"])
    if parameters["blocks"] is not None:
        parameters["blocks"] = [
            Block(**{**block, "width": math.inf if block["width"] == "inf" else block["width"]})
            for block in parameters["blocks"]
        ]
    if parameters["image_shape"] is not None:
        parameters["image_shape"] = tuple(parameters["image_shape"])
    model = ESTIMATORS[content["estimator"]](**parameters)
    described = content["layers"]
    if content["format"] != FORMAT:
        described = [_without_biases(layer) for layer in described]
    layers, model.filters_ = network_from_parts(arrays, described, content["filters"])
    readout = layers.pop() if content["has_readout"] else None
    model.network_ = Network(tuple(layers), readout)
    model.n_features_in_ = int(content["n_features_in"])
    model.readout_ = None
    if readout is not None:
        numbers = from_words(content["readout"])
        model.readout_ = RidgeFit(readout.coefficients, readout.intercept, **numbers)
    if "classes" in content:
        kind = np.dtype(content["classes"]["dtype"])
        if kind.hasobject:
            raise ValueError("classes of objects")
        model.classes_ = np.array(content["classes"]["values"], dtype=kind)
    if "label" in content:
        model._code = LabelCode(np.empty(0, dtype=int), **content["label"])
    if "feature_names_in" in content:
        model.feature_names_in_ = np.array(content["feature_names_in"], dtype=object)
    return model


def _without_biases(layer: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a layer of the first format to the present format."""
    if "squared_scales" in layer:
        return {**layer, "squared_biases": [0.0] * len(layer["squared_scales"])}
    return {**layer, "bias": 0.0} if layer["kind"] == Lift.kind else dict(layer)


def _parameters(model: Any) -> dict[str, Any]:
    parameters = dict(model.get_params(deep=False))
    if parameters["blocks"] is not None:
        parameters["blocks"] = [asdict(block) for block in parameters["blocks"]]
    seed = parameters["random_state"]
    # A random generator is not stored; the fitted network does not need it.
    parameters["random_state"] = int(seed) if isinstance(seed, (int, np.integer)) else None
    return parameters
