"""Convert fitted layers and filter reports to arrays and JSON values, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from solvable.errors import InvalidData
from solvable.fitting.described_arrays import checked_number, from_words, under
from solvable.networks.filters import FilterReport
from solvable.networks.layers import (
    AsImages,
    Filter,
    Flatten,
    KernelFilter,
    KernelReadout,
    Lift,
    LinearReadout,
    Pool,
    Residual,
    Standardise,
    Whiten,
)
from solvable.numpy_files import check_unpacked

LAYERS: dict[str, type] = {
    layer.kind: layer
    for layer in (
        Standardise,
        Whiten,
        AsImages,
        Flatten,
        Pool,
        Filter,
        Lift,
        KernelFilter,
        LinearReadout,
        KernelReadout,
        Residual,
    )
}
"""Kinds of layers that a file may contain."""


def layer_parts(layer: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and JSON settings of a layer for storage."""
    values = {field.name: getattr(layer, field.name) for field in fields(layer)}
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    if isinstance(layer, Residual):
        parts = [layer_parts(inner) for inner in layer.layers]
        arrays = {
            f"{place}.{name}": array
            for place, (inner, _) in enumerate(parts)
            for name, array in inner.items()
        }
        values["layers"] = [settings for _, settings in parts]
    settings = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if name not in arrays
    }
    return arrays, {"kind": layer.kind, **settings}


def layer_from_parts(arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> Any:
    """Make a layer from the results of :func:`layer_parts`."""
    kind = settings.get("kind")
    if kind not in LAYERS:
        raise InvalidData(f"a layer is of kind {kind!r}; allowed: {', '.join(LAYERS)}.")
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in settings.items()
        if name != "kind"
    }
    if kind == Residual.kind and "layers" in values:
        inner = enumerate(values["layers"])
        values["layers"] = tuple(layer_from_parts(under(arrays, f"{n}."), one) for n, one in inner)
    else:
        values |= arrays
    wanted = {field.name for field in fields(LAYERS[kind])}
    if set(values) != wanted:
        raise InvalidData(
            f"a layer of kind {kind!r} has parts {', '.join(sorted(values))}; allowed: "
            f"{', '.join(sorted(wanted))}."
        )
    if kind == Lift.kind:
        # Weights are drawn, not stored, so that a few bytes could announce any number of them.
        inputs, width = (
            int(checked_number(values[name], 1, 2**40)) for name in ("n_inputs", "width")
        )
        check_unpacked(8.0 * inputs * width, "a lift of the model")
    return LAYERS[kind](**values)


def network_parts(
    layers: Sequence[Any], filters: Sequence[FilterReport]
) -> tuple[dict[str, np.ndarray], list[dict[str, Any]], list[dict[str, Any]]]:
    """Arrays and descriptions of fitted layers and of their filter reports."""
    arrays: dict[str, np.ndarray] = {}
    described, reports = [], []
    for number, layer in enumerate(layers):
        parts, settings = layer_parts(layer)
        arrays |= {f"layers.{number}.{key}": value for key, value in parts.items()}
        described.append(settings)
    for number, report in enumerate(filters):
        values = {field.name: getattr(report, field.name) for field in fields(report)}
        parts = {key: value for key, value in values.items() if isinstance(value, np.ndarray)}
        arrays |= {f"filters.{number}.{key}": value for key, value in parts.items()}
        reports.append({key: value for key, value in values.items() if key not in parts})
    return arrays, described, reports


def network_from_parts(
    arrays: Mapping[str, np.ndarray],
    layers: Sequence[Mapping[str, Any]],
    filters: Sequence[Mapping[str, Any]],
) -> tuple[list[Any], tuple[FilterReport, ...]]:
    """Make fitted layers and reports from the results of :func:`network_parts`."""
    fitted = [
        layer_from_parts(under(arrays, f"layers.{number}."), settings)
        for number, settings in enumerate(layers)
    ]
    reports = tuple(
        FilterReport(**{**under(arrays, f"filters.{number}."), **from_words(rest)})
        for number, rest in enumerate(filters)
    )
    return fitted, reports
