"""Fitted networks in files that cannot execute code."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from solvable.errors import InvalidData, InvalidParameter, StorageFailed
from solvable.learners.lofi_blocks import Block, LabelCode
from solvable.learners.lofi_filter import FilterReport
from solvable.learners.lofi_layers import Network, layer_from_parts, layer_parts
from solvable.learners.ridge_readout import RidgeFit

FORMAT = "solvable-lofi-1"
"""Name and version of the format."""

_ESTIMATORS = ("NeuralLoFiTransformer", "NeuralLoFiRegressor", "NeuralLoFiClassifier")


def save_model(model: Any, path: str | Path, *, notes: Mapping[str, Any] | None = None) -> Path:
    """Store a fitted estimator as safetensors: arrays and JSON, no code.

    Parameters
    ----------
    model : NeuralLoFiTransformer, NeuralLoFiRegressor or NeuralLoFiClassifier
        Fitted.
    path : str or Path
        File to write; an existing one is replaced in one step.
    notes : mapping, optional
        Anything that JSON can hold, to travel with the model: how columns were prepared, names.

    Returns
    -------
    Path
        The file. It holds a digest of all else it holds.

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
    from safetensors.numpy import save

    name = type(model).__name__
    if name not in _ESTIMATORS or not hasattr(model, "network_"):
        raise InvalidParameter(f"model is {model!r}; allowed: a fitted {', '.join(_ESTIMATORS)}.")
    arrays: dict[str, np.ndarray] = {}
    layers = list(model.network_.layers)
    if model.network_.readout is not None:
        layers.append(model.network_.readout)
    described = []
    for number, layer in enumerate(layers):
        parts, settings = layer_parts(layer)
        arrays |= {f"layers.{number}.{key}": value for key, value in parts.items()}
        described.append(settings)
    reports = []
    for number, report in enumerate(model.filters_):
        values = {one.name: getattr(report, one.name) for one in fields(report)}
        parts = {key: one for key, one in values.items() if isinstance(one, np.ndarray)}
        arrays |= {f"filters.{number}.{key}": value for key, value in parts.items()}
        reports.append({key: one for key, one in values.items() if key not in parts})
    content: dict[str, Any] = {
        "format": FORMAT,
        "estimator": name,
        "parameters": _parameters(model),
        "n_features_in": int(model.n_features_in_),
        "layers": described,
        "has_readout": model.network_.readout is not None,
        "filters": reports,
        "notes": dict(notes or {}),
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
        content["feature_names_in"] = [str(one) for one in model.feature_names_in_]
    arrays = {key: np.ascontiguousarray(value) for key, value in arrays.items()}
    text = json.dumps(_plain(content), sort_keys=True, allow_nan=False)
    digest = _digest(arrays, text)
    data = save(arrays, metadata={"solvable": text, "digest": digest})
    _write(Path(path), data)
    return Path(path)


def load_model(path: str | Path) -> Any:
    """Fitted estimator from a file of :func:`save_model`.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    NeuralLoFiTransformer, NeuralLoFiRegressor or NeuralLoFiClassifier
        Predicts the same numbers.

    Raises
    ------
    InvalidData
        If the file is missing, cut, changed since it was written, or no model.
    """
    arrays, content = _read(Path(path))
    try:
        return _rebuilt(arrays, content)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InvalidData(
            f"{path} does not describe a model ({type(error).__name__}: {error}). Save it again "
            "with solvable.learners.save_model."
        ) from error


def model_notes(path: str | Path) -> dict[str, Any]:
    """What was stored with a model under ``notes``.

    Parameters
    ----------
    path : str or Path
        File of :func:`save_model`.

    Returns
    -------
    dict
        As given to :func:`save_model`.
    """
    return dict(_read(Path(path))[1].get("notes", {}))


def _rebuilt(arrays: Mapping[str, np.ndarray], content: Mapping[str, Any]) -> Any:
    from solvable.learners import lofi

    if content["estimator"] not in _ESTIMATORS:
        raise ValueError(f"estimator {content['estimator']!r}")
    parameters = dict(content["parameters"])
    if parameters["blocks"] is not None:
        parameters["blocks"] = [
            Block(**{**one, "width": math.inf if one["width"] == "inf" else one["width"]})
            for one in parameters["blocks"]
        ]
    if parameters["image_shape"] is not None:
        parameters["image_shape"] = tuple(parameters["image_shape"])
    model = getattr(lofi, content["estimator"])(**parameters)
    layers = [
        layer_from_parts(_under(arrays, f"layers.{number}."), settings)
        for number, settings in enumerate(content["layers"])
    ]
    readout = layers.pop() if content["has_readout"] else None
    model.network_ = Network(tuple(layers), readout)
    model.filters_ = tuple(
        FilterReport(**{**_under(arrays, f"filters.{number}."), **_unplain(rest)})
        for number, rest in enumerate(content["filters"])
    )
    model.n_features_in_ = int(content["n_features_in"])
    model.readout_ = None
    if readout is not None:
        numbers = _unplain(content["readout"])
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


def _under(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {
        key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)
    }


def _parameters(model: Any) -> dict[str, Any]:
    found = dict(model.get_params(deep=False))
    if found["blocks"] is not None:
        found["blocks"] = [asdict(block) for block in found["blocks"]]
    seed = found["random_state"]
    # A generator has no place in a file, and the fitted network does not need it.
    found["random_state"] = int(seed) if isinstance(seed, (int, np.integer)) else None
    return found


def _plain(value: Any) -> Any:
    """What JSON can hold: infinities and NaN as words, NumPy scalars as Python's."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _unplain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: float(one) if one in ("inf", "-inf", "nan") else one for key, one in values.items()
    }


def _digest(arrays: Mapping[str, np.ndarray], text: str) -> str:
    summed = hashlib.sha256(text.encode())
    for key in sorted(arrays):
        value = arrays[key]
        summed.update(f"{key}|{value.dtype.str}|{value.shape}|".encode())
        summed.update(np.ascontiguousarray(value).tobytes())
    return summed.hexdigest()


def _write(path: Path, data: bytes) -> None:
    import os
    import tempfile

    try:
        handle, name = tempfile.mkstemp(dir=path.parent or ".", prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StorageFailed(f"{path} could not be written ({error}).") from error


def _read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as stream:
            metadata = stream.metadata() or {}
            arrays = {key: stream.get_tensor(key) for key in stream.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise InvalidData(f"{path} does not exist; allowed: a file of save_model.") from error
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise InvalidData(
            f"{path} is no model, or was cut ({error}). Allowed: a file of "
            "solvable.learners.save_model; copy or save it again."
        ) from error
    text = metadata.get("solvable", "")
    if not text:
        raise InvalidData(
            f"{path} holds arrays but no solvable model; allowed: a file of "
            "solvable.learners.save_model."
        )
    if metadata.get("digest") != _digest(arrays, text):
        raise InvalidData(
            f"{path} was changed since it was written: its digest does not fit. Save it again."
        )
    try:
        content = json.loads(text)
    except ValueError as error:
        raise InvalidData(f"{path} has a description that is not JSON ({error}).") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        seen = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise InvalidData(f"{path} is of format {seen!r}; allowed: {FORMAT!r}.")
    return arrays, content
