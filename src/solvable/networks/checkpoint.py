"""A fit half done, as arrays and plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from solvable.fitting.described_arrays import under
from solvable.networks.blocks import LabelCode
from solvable.networks.files import network_from_parts, network_parts
from solvable.networks.passes import PassByPass
from solvable.networks.sums import classes_from_arrays, classes_to_arrays

FORMAT = "solvable-lofi-checkpoint-1"
"""Name and version of the format."""

ORIGIN = "fit_stream(checkpoint=...)"


def stored(passes: PassByPass, sums: Any, row: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """What is needed to go on from here.

    Parameters
    ----------
    passes : PassByPass
        The fit.
    sums : Survey, FilterSums, ScaleSums or ReadoutMoments
        Sums of the current pass.
    row : int
        Rows that they hold.

    Returns
    -------
    arrays : dict of str to ndarray
        Numbers.
    content : dict
        What JSON can hold.
    """
    arrays, layers, filters = network_parts(passes.layers, passes.reports)
    arrays |= {f"sums.{key}": value for key, value in sums.to_arrays().items()}
    arrays |= {f"labels.{key}": one for key, one in classes_to_arrays(passes.classes).items()}
    content: dict[str, Any] = {
        "format": FORMAT,
        "layers": layers,
        "filters": filters,
        "row": row,
        "rows": passes.rows,
        "stage": passes.stage,
        "block": passes.block,
        "square": passes.square,
        "shape": list(passes.shape),
    }
    if passes.code is not None:
        arrays["labels.counts"] = passes.code.counts
        content["label"] = {
            "mean": passes.code.mean,
            "deviation": passes.code.deviation,
            "centre": passes.code.centre,
        }
    return arrays, content


def restore(
    passes: PassByPass, arrays: Mapping[str, np.ndarray], content: Mapping[str, Any]
) -> tuple[Any, int]:
    """Bring a new fit to where another one was stored.

    Parameters
    ----------
    passes : PassByPass
        A fit of the same settings; changed in place.
    arrays : mapping of str to ndarray
        As stored.
    content : mapping
        As stored.

    Returns
    -------
    sums : Survey, FilterSums, ScaleSums or ReadoutMoments
        Sums of the current pass.
    row : int
        Rows that they hold.
    """
    layers, reports = network_from_parts(arrays, content["layers"], content["filters"])
    passes.layers, passes.reports = layers, list(reports)
    labels = under(arrays, "labels.")
    passes.classes = classes_from_arrays(labels)
    if "label" in content:
        passes.code = LabelCode(labels["counts"], **content["label"])
    passes.rows = int(content["rows"])
    passes.stage = content["stage"]
    passes.block = int(content["block"])
    passes.square = content["square"]
    passes.shape = tuple(content["shape"])
    return passes.sums_from(under(arrays, "sums.")), int(content["row"])
