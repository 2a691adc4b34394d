"""Descriptions of torch modules and of files, which are read without executing them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from solvable.data.weights.opening import iter_weights
from solvable.documents import read_document
from solvable.errors import InvalidData, InvalidParameter, unknown_choice
from solvable.paths import check_path
from solvable.scale.networks_of_data.layer_description import (
    ModelDescription,
    describe_layers,
    is_model,
    model_of,
)
from solvable.scale.networks_of_data.layer_walk import ACTIVATIONS

WEIGHTS = (".safetensors", ".npz")
"""Endings of the names of weight files."""


def describe_module(
    module: Any, input_shape: int | Sequence[int] | None = None, *, act: str | None = None
) -> ModelDescription:
    """Describe a torch module by the list of its layers, without running it.

    Parameters
    ----------
    module : torch.nn.Module
        Linear, Conv1d and Conv2d layers, pooling, Flatten and activations, nested to any depth, in
        the order in which they are registered. Dropout and normalisation are ignored.
    input_shape : int or sequence of int, optional
        Shape of one input, channels first; may be left out if the first layer is linear.
    act : str, optional
        Activation that ``forward`` applies as a function between layers, if no module is registered
        for it.

    Returns
    -------
    ModelDescription
        Sizes of the model, and their exponents; the method ``save`` writes a file for ``solvable scale``.

    Raises
    ------
    InvalidData
        If a module cannot be read, such as attention, recurrence, or a module that contains itself.

    Notes
    -----
    Needs torch. Backed by ``tests/scale/networks_of_data/test_modules.py``.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> net = torch.nn.Sequential(
    ...     torch.nn.Linear(64, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)
    ... )  # doctest: +SKIP
    >>> describe_module(net).numbers  # doctest: +SKIP
    {'d': 64, 'N': 32}
    """
    try:
        import torch
    except ImportError as error:
        raise InvalidParameter(
            "torch is not installed; describe the model by a list of layers instead."
        ) from error
    if not isinstance(module, torch.nn.Module):
        raise InvalidData(f"module is a {type(module).__name__}; allowed: a torch.nn.Module.")
    entries = [_of_torch(leaf, name) for name, leaf in _leaves(module, "", ())]
    if act is not None:
        entries = _filled(entries, act)
    if input_shape is None:
        first = next((leaf for _, leaf in _leaves(module, "", ()) if _has_weights(leaf)), None)
        if not isinstance(first, torch.nn.Linear):
            raise InvalidData(
                "the first layer is not linear, so that the number of inputs is unknown; pass "
                "input_shape, for example (1, 28, 28)."
            )
        input_shape = first.in_features
    model = describe_layers(entries, input_shape)
    own = sorted({type(part).__name__ for part in module.modules() if _is_own(part)})
    if own:
        note = (
            f"the modules of {', '.join(own)} are read in the order of registration: anything else in "
            "forward (a skip connection, another order) is ignored"
        )
        model = replace(model, said=(note,))
    return model


def read_model(path: str | Path, *, act: str | None = None) -> ModelDescription:
    """Read a model description from JSON or TOML, or from the shapes of weights; no code is run."""
    path = check_path(path)
    if path.suffix.lower() in WEIGHTS:
        return _of_shapes(path, act)
    return model_of(_content(path), path)


def find_model(source: Any, act: str | None = None) -> ModelDescription | None:
    """Return the real model that a mapping or file describes; None for a network in exponents."""
    if isinstance(source, Mapping):
        return model_of(source) if is_model(source) else None
    if source is None:
        return None
    path = check_path(source)
    if path.suffix.lower() in WEIGHTS:
        return read_model(path, act=act)
    content = _content(path)
    return model_of(content, path) if is_model(content) else None


def _content(path: Path) -> Any:
    """Read the content of a JSON or TOML file."""
    if path.suffix.lower() not in (".json", ".toml"):
        raise InvalidData(
            f"{path} ends in {path.suffix!r}; allowed: .json, .toml, .safetensors, .npz. Files that "
            "hold Python objects (.pt, .pkl) are not read: write "
            "describe_module(model).save('model.json')."
        )
    return read_document(path)


def _leaves(module: Any, name: str, above: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    """Yield the modules without children, with names, in the order of registration."""
    if id(module) in above or len(above) > 50:
        raise InvalidData(
            f"module {name!r} contains itself; allowed: modules without cycles, nested up to 50 deep."
        )
    children = list(module._modules.items())
    if children and module._parameters:
        raise InvalidData(
            f"module {name or type(module).__name__!r} has weights in addition to its modules "
            f"({next(iter(module._parameters))}); allowed: weights in Linear and Conv layers only."
        )
    if not children:
        yield name or type(module).__name__, module
    elif _is_opaque(module):
        raise _unreadable(name, module)
    for key, child in children:
        if child is not None:
            yield from _leaves(child, f"{name}.{key}" if name else key, (*above, id(module)))


def _is_own(module: Any) -> bool:
    """Return True if a module with children has a class that torch does not define."""
    return bool(module._modules) and not type(module).__module__.startswith("torch.nn")


def _is_opaque(module: Any) -> bool:
    """Return True if a torch module does more than apply its children in order."""
    return type(module).__module__.startswith("torch.nn.modules") and type(module).__name__ not in (
        "Sequential", "ModuleList",
    )  # fmt: skip


def _has_weights(leaf: Any) -> bool:
    return type(leaf).__name__ in ("Linear", "Conv1d", "Conv2d")


def _unreadable(name: str, module: Any) -> InvalidData:
    return InvalidData(
        f"module {name!r} is a {type(module).__name__}; allowed: Linear, Conv1d, "
        "Conv2d, pooling, Flatten, activations, dropout, normalisation. Describe it by its monomials."
    )


def _of_torch(leaf: Any, name: str) -> dict[str, Any]:
    """Describe a module without children as a layer."""
    kind = type(leaf).__name__
    entry: dict[str, Any] = {"name": name}
    if kind == "Linear":
        return entry | {"kind": "linear", "inputs": leaf.in_features, "size": leaf.out_features}
    if kind in ("Conv1d", "Conv2d"):
        plain = all(step == 1 for step in leaf.dilation) and leaf.groups == 1
        if not plain or isinstance(leaf.padding, str):
            raise InvalidData(
                f"module {name!r} is a {kind} with groups, with dilation or with padding given as a "
                "word; allowed: none of these. Describe the module by its monomials."
            )
        sizes = {key: list(getattr(leaf, f"{key}_size" if key == "kernel" else key))
                 for key in ("kernel", "stride", "padding")}  # fmt: skip
        return entry | {"kind": "conv", "size": leaf.out_channels} | sizes
    if re.fullmatch(r"(Max|Avg)Pool[12]d", kind):
        sizes = {"kernel": leaf.kernel_size, "stride": leaf.stride, "padding": leaf.padding}
        return entry | {"kind": "pool"} | {k: _plain(v) for k, v in sizes.items()}
    if re.fullmatch(r"Adaptive(Max|Avg)Pool[12]d", kind):
        return entry | {"kind": "pool", "output": _plain(leaf.output_size)}
    if re.fullmatch(r"(Alpha|Feature\w*)?Dropout[123]?d?", kind):
        return entry | {"kind": "dropout"}
    if re.fullmatch(r"(Batch|Instance|Layer|Group|RMS)Norm[12]?d?", kind):
        return entry | {"kind": "normalisation"}
    if kind.lower() in (*ACTIVATIONS, "flatten", "identity"):
        return entry | {"kind": kind.lower()}
    raise _unreadable(name, leaf)


def _plain(sizes: Any) -> Any:
    return sizes if isinstance(sizes, int) else list(sizes)


def _filled(entries: list[dict[str, Any]], act: str) -> list[dict[str, Any]]:
    """Add an activation after each layer with weights that has none, except the last."""
    if act not in ACTIVATIONS:
        raise InvalidParameter(unknown_choice("act", act, tuple(ACTIVATIONS)))
    filled: list[dict[str, Any]] = []
    open_ = False
    for entry in entries:
        if entry["kind"] in ("linear", "conv"):
            filled += [{"kind": act}] if open_ else []
            open_ = True
        elif entry["kind"] in ACTIVATIONS:
            open_ = False
        filled.append(entry)
    return filled


def _of_shapes(path: Path, act: str | None) -> ModelDescription:
    """Build a model from the shapes of stored weights of linear layers."""
    if act is None:
        raise InvalidParameter(
            f"{path} holds no activations; give the activation between its layers by act."
        )
    found = [stored for stored in iter_weights(path) if stored.is_matrix]
    if not found:
        raise InvalidData(f"{path} contains no matrix; allowed: weights of linear layers.")
    for stored in found:
        if len(stored.shape) != 2:
            raise InvalidData(
                f"{path}: {stored.name!r} has shape {stored.shape}, and its stride and padding are not "
                "stored; allowed: matrices. Use describe_module(model).save('model.json')."
            )
    # Files sort names as text, so that 10.weight comes before 2.weight.
    found.sort(key=lambda stored: [
        (0, int(part), "") if re.fullmatch("[0-9]{1,9}", part) else (1, 0, part)
        for part in re.split(r"([0-9]+)", stored.name)
    ])  # fmt: skip
    entries: list[dict[str, Any]] = [
        {"kind": "linear", "name": stored.name, "inputs": stored.shape[1], "size": stored.shape[0]}
        for stored in found
    ]
    return describe_layers(_filled(entries, act), found[0].shape[1])
