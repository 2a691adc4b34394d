"""Change since the initial weights as a low-rank adapter, in the layout of PEFT."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from solvable.data.weights.stored import StoredArray, Weights
from solvable.diagnose.change import rank_of
from solvable.plots.files import write_atomically
from solvable.plots.words import counted, listed

FOLDER = "adapter"  # in the output directory
SHARE = 0.95  # of the squared norm of each change


def write_adapter(weights: Weights, initial: Weights, draft: Path) -> list[str]:
    """Write the factors of all changes that are smaller than their matrices; return sentences."""
    before = {stored.name: stored for stored in initial.arrays}
    arrays: dict[str, np.ndarray] = {}
    ranks: dict[str, int] = {}
    whole, other = [], []
    for stored in weights.arrays:
        change = _change(stored, before.get(stored.name))
        if change is None or not change.any():
            continue
        if change.ndim != 2 or not stored.name.endswith(".weight"):
            other.append(stored.name)
            continue
        left, values, right = np.linalg.svd(change, full_matrices=False)
        rank = rank_of(change, values) or 1
        if rank * sum(change.shape) >= change.size:
            whole.append(stored.name)
            continue
        root = np.sqrt(values[:rank])
        module = stored.name.removesuffix(".weight")
        # B A is the change: both factors carry the root of its values.
        arrays[f"base_model.model.{module}.lora_A.weight"] = _single(root[:, None] * right[:rank])
        arrays[f"base_model.model.{module}.lora_B.weight"] = _single(left[:, :rank] * root)
        ranks[module] = rank
    if not ranks:
        return [
            "No adapter was written: no change of a matrix is smaller as factors.",
            *_left(whole, other),
        ]
    from safetensors.numpy import save

    folder = draft / FOLDER
    folder.mkdir()
    write_atomically(folder / "adapter_model.safetensors", save(arrays, {"format": "pt"}))
    text = json.dumps(_configuration(ranks), indent=2, sort_keys=True)
    write_atomically(folder / "adapter_config.json", f"{text}\n".encode())
    number = counted(len(ranks), "matrix", "matrices")
    return [
        f"{FOLDER}/ holds the change of {number} as LoRA factors of rank {min(ranks.values())} to "
        f"{max(ranks.values())}, with {100 * SHARE:g} % of each squared norm.",
        *_left(whole, other),
    ]


def _left(whole: Sequence[str], other: Sequence[str]) -> list[str]:
    lines = []
    if whole:
        lines.append(
            f"Not in the adapter, because factors would be as large: {listed(list(whole))}."
        )
    if other:
        lines.append(
            f"Not in the adapter, because only matrices named .weight can be: {listed(list(other))}."
        )
    return lines


def _change(stored: StoredArray, before: StoredArray | None) -> np.ndarray | None:
    if before is None or before.shape != stored.shape or stored.integral:
        return None
    change: np.ndarray = stored.read().astype(np.float64) - before.read()
    return change if np.isfinite(change).all() else None


def _single(matrix: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(matrix, dtype=np.float32)


def _configuration(ranks: Mapping[str, int]) -> dict[str, Any]:
    """Configuration by which PEFT reads the factors; each scaling, alpha / rank, is 1."""
    most = max(ranks.values())
    return {
        "peft_type": "LORA",
        "base_model_name_or_path": None,
        "task_type": None,
        "inference_mode": True,
        "r": most,
        "lora_alpha": most,
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": False,
        "target_modules": sorted(ranks),
        "rank_pattern": dict(ranks),
        "alpha_pattern": dict(ranks),
    }
