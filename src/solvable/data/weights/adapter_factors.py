"""Factors of low-rank adapters: their names, and the number by which their product is multiplied."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from solvable.data.weights.stored import StoredArray

# Names of PEFT, of its embeddings, and of kohya and diffusers; the first factor takes the inputs.
PAIRS = {"lora_A": "lora_B", "lora_embedding_A": "lora_embedding_B", "lora_down": "lora_up"}
FACTOR = re.compile(rf"\.({'|'.join([*PAIRS, *PAIRS.values()])})(?=\.|$)")

CONFIGURATION = "adapter_config.json"

UNKNOWN = "without its factor lora_alpha / r, which is not known"


def scaled_factors(
    arrays: Sequence[StoredArray], settings: Sequence[tuple[str, Mapping[str, object]]]
) -> list[StoredArray]:
    """Multiply the second factor of each adapter by its stated lora_alpha / r; drop kohya's alphas."""
    by_name = {stored.name: stored for stored in arrays}
    table = next((table for name, table in settings if name == CONFIGURATION), {})
    found, used = [], set()
    for stored in arrays:
        place = FACTOR.search(stored.name)
        if place is None or place[1] in PAIRS or len(stored.shape) < 2 or not stored.shape[1]:
            found.append(stored)
            continue
        stem, rank = stored.name[: place.start()], stored.shape[1]
        beside = by_name.get(f"{stem}.alpha")
        rooted = beside is None and table.get("use_rslora") is True
        size = _alpha_of(stem, table)
        if beside is not None and math.prod(beside.shape) == 1 and not beside.fault:
            size = float(beside.read().reshape(()))
        if math.isfinite(size):
            used.add(f"{stem}.alpha")
            factor = size / (math.sqrt(rank) if rooted else rank)
            text = f"times lora_alpha / {'sqrt(r)' if rooted else 'r'} = {factor:.3g}"
            reader = partial(_read_scaled, stored, factor)
            stored = replace(stored, layout=text, reader=reader, members=False)
        found.append(stored if stored.layout else replace(stored, layout=UNKNOWN))
    return [stored for stored in found if stored.name not in used]


def _alpha_of(stem: str, table: Mapping[str, object]) -> float:
    """Return the alpha of a module in PEFT's configuration; NaN if it is not known."""
    module = stem.removeprefix("base_model.model.")
    alpha, pattern = table.get("lora_alpha"), table.get("alpha_pattern")
    for key, value in list(pattern.items())[:5000] if isinstance(pattern, dict) else ():
        # Keys are regular expressions. Only plain names are compared, because an expression in a file can
        # take any time.
        plain = key.replace("\\.", ".").removeprefix("^")
        if module == plain or (module.endswith(f".{plain}") and not key.startswith("^")):
            alpha = value
            break
        alpha = alpha if re.fullmatch(r"[\w.\-]+", plain) else None
    return float(alpha) if isinstance(alpha, int | float) and abs(alpha) < 1e9 else math.nan


@np.errstate(all="ignore")  # damaged factors are refused later
def _read_scaled(stored: StoredArray, factor: float) -> np.ndarray:
    return np.asarray(stored.read() * np.float32(factor))
