"""Copy of a PyTorch checkpoint with other entries, or with factors in the place of a tensor."""

from __future__ import annotations

import zipfile
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import numpy as np

from solvable.data.weights.stored import package, shown_name
from solvable.data.weights.torch_file import (
    loaded_checkpoint,
    model_part,
    named_places,
    numpy_of,
)
from solvable.data.weights.writing.replacement import LEFT, RIGHT, Factors, Replacement


def copy_torch(path: Path, target: Path, changes: dict[str, Replacement]) -> None:
    """Write a copy; entries next to the state dict, tied tensors and buffers are kept."""
    torch = package("torch", "torch", path)
    whole = loaded_checkpoint(path)
    part, _ = model_part(whole)
    factored: list[tuple[Any, Any, Factors]] = []
    for name, container, key in list(named_places(part)):
        change = changes.pop(shown_name(name), None)
        if change is None:
            continue
        tensor = part if container is None else container[key]
        new = change(numpy_of(tensor))
        if isinstance(new, Factors) and isinstance(container, MutableMapping):
            factored.append((container, key, new))
            continue
        if isinstance(new, Factors):  # a tensor in a list stays one tensor
            new = new.product()
        with torch.no_grad():
            # The pages of a mapped file are private, so the original file stays as it is.
            tensor.copy_(torch.from_numpy(np.array(new)).reshape(tensor.shape))
    for container, key, new in factored:
        _split(torch, container, key, new)
    torch.save(whole, target, _use_new_zipfile_serialization=zipfile.is_zipfile(path))


def _split(torch: Any, container: MutableMapping[Any, Any], key: Any, new: Factors) -> None:
    """Put two factors in the place of a tensor; the other entries keep their order."""
    entries = list(container.items())
    container.clear()
    for name, value in entries:
        if name != key:
            container[name] = value
            continue
        for ending, factor in ((LEFT, new.left), (RIGHT, new.right)):
            tensor = torch.from_numpy(np.array(factor)).to(value.dtype)
            container[f"{name}{ending}"] = tensor.contiguous()
