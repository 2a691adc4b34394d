"""Weights of objects in Python: state dicts, torch modules, dictionaries of arrays, estimators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from solvable.data.weights.stored import StoredArray, Weights, broken, of_numpy
from solvable.data.weights.torch_file import describe_tensor, numpy_of
from solvable.errors import InvalidParameter

_ALLOWED = (
    "a path, a state dict or another dictionary of arrays, a torch module, a Keras model, or a fitted "
    "MLPClassifier or MLPRegressor of scikit-learn"
)


def weights_in_memory(source: Any) -> Weights:
    """Return the arrays of an object; raise for objects without weights."""
    name = type(source).__name__
    if isinstance(source, Mapping):
        entries = dict(_flat(source, ""))
        if not entries:
            raise InvalidParameter(f"the dictionary of weights is empty; allowed: {_ALLOWED}.")
        return Weights("weights", _arrays(entries))
    if isinstance(source, np.ndarray):
        return Weights("weights", _arrays({"weights": source}))
    if callable(getattr(source, "state_dict", None)):
        return Weights(name, _arrays(source.state_dict()), settings=_settings(source))
    if hasattr(source, "steps"):  # pipeline of scikit-learn: the network is its last step
        source = source.steps[-1][1]
        name = type(source).__name__
    if hasattr(source, "coefs_"):
        entries = {f"coefs_.{k}": array for k, array in enumerate(source.coefs_)}
        note = "Arrays of scikit-learn are (inputs, outputs)."
        return Weights(name, _arrays(entries), notes=(note,))
    if callable(getattr(source, "get_weights", None)) and hasattr(source, "weights"):
        variables = enumerate(source.weights)
        entries = {str(getattr(one, "path", "") or f"{one.name}.{k}"): one for k, one in variables}
        return Weights(name, _arrays(entries))
    fitted = " that is not fitted" if hasattr(source, "hidden_layer_sizes") else ""
    raise InvalidParameter(f"the weights are of type {name}{fitted}; allowed: {_ALLOWED}.")


def _flat(table: Mapping[Any, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield the arrays of nested dictionaries, as of JAX; names are joined by slashes."""
    for key, value in table.items():
        name = f"{prefix}/{key}" if prefix else str(key)
        if isinstance(value, Mapping):
            yield from _flat(value, name)
        elif isinstance(value, list | tuple):
            yield from _flat(dict(enumerate(value)), name)
        else:
            yield name, value


def _arrays(entries: Mapping[str, Any]) -> tuple[StoredArray, ...]:
    return tuple(_described(str(name), value) for name, value in entries.items())


def _described(name: str, value: Any) -> StoredArray:
    if hasattr(value, "detach") and hasattr(value, "is_meta"):
        return describe_tensor(name, value, partial(numpy_of, value))
    try:
        array = np.asarray(value)
    except Exception as error:  # any object may stand in a dictionary
        return broken(name, f"it is no array ({type(error).__name__})")
    return of_numpy(name, array.shape, array.dtype, partial(np.asarray, array))


def _settings(module: Any) -> tuple[tuple[str, dict[str, object]], ...]:
    """Return the configuration of a transformers model, or the heads of torch's own attention."""
    config: Any = getattr(module, "config", None)
    if callable(getattr(config, "to_dict", None)):
        return (("its configuration", dict(config.to_dict())),)
    modules = module.modules() if callable(getattr(module, "modules", None)) else ()
    heads = {part.num_heads for part in modules if type(part).__name__ == "MultiheadAttention"}
    return (("its attention", {"num_attention_heads": heads.pop()}),) if len(heads) == 1 else ()
