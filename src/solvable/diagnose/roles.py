"""Projections that are stored together in one array, by its name and shape."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from solvable.data.weights.stored import StoredArray
from solvable.diagnose.attention.fused_layouts import (
    BY_HEAD,
    FUSED,
    INPUTS_FIRST,
    Heads,
    query_key_value,
)

# Parts of the arrays with these names, in the order of storage.
_PARTS = {
    **dict.fromkeys((*FUSED, *BY_HEAD, "to_qkv", "w_qkv"), ("query", "key", "value")),
    **dict.fromkeys(("to_kv", "kv", "kv_proj"), ("key", "value")),
    "gate_up_proj": ("gate", "up"),
}

# Gates of torch's recurrent layers, by the number of gates.
_GATES = {
    4: ("input gate", "forget gate", "cell", "output gate"),
    3: ("reset gate", "update gate", "new gate"),
}
_RECURRENT = re.compile(r"weight_([ih])h_(l\d+(?:_reverse)?)$")

_UNSPLIT = ("in_proj",)  # fused projections whose layout differs between libraries


@dataclass(frozen=True)
class Part:
    """Part of a fused array."""

    name: str  # name of the part, such as "query"
    axis: int  # axis along which the parts are concatenated
    rows: np.ndarray  # indices of the part along the axis

    def of(self, whole: np.ndarray) -> np.ndarray:
        """Return the part of an array."""
        return np.take(whole, self.rows, axis=self.axis)


def is_fused(name: str, shape: tuple[int, ...]) -> bool:
    """Return True for projections stored together in one array, recognised by name and shape."""
    # A part of a fused array, such as "in_proj_weight[query]", is an ordinary matrix.
    if len(shape) != 2 or name.endswith("]"):
        return False
    words = _words(name)
    return any(word in _PARTS or word in _UNSPLIT or _RECURRENT.match(word) for word in words)


def _words(name: str) -> list[str]:
    # Keras numbers its arrays, for example "embedding/embeddings:0".
    return [word for word in re.split(r"[./:]", re.sub(r":\d+$", "", name.lower())) if word]


def split_arrays(arrays: Iterable[StoredArray], heads: Heads) -> Iterator[StoredArray]:
    """Yield the arrays of a file, with fused projections split, and the layout assumed for each."""
    arrays = list(arrays)
    shapes = {stored.name: stored.shape for stored in arrays}
    for stored in arrays:
        if stored.integral or not is_fused(stored.name, stored.shape):
            yield stored
            continue
        parts, layout = parts_of(stored.name, shapes, heads)
        if not parts:
            yield replace(stored, layout=layout)
        for part in parts:
            shape = list(stored.shape)
            shape[part.axis] = len(part.rows)
            yield replace(
                stored,
                name=f"{stored.name}[{part.name}]",
                shape=tuple(shape),
                reader=partial(_read_part, stored, part),
                layout=layout,
            )


def entries_read(stored: StoredArray) -> int:
    """Return the number of entries that are read for an array: of the whole fused array for a part."""
    part = isinstance(stored.reader, partial) and stored.reader.func is _read_part
    whole = stored.reader.args[0] if part else stored  # type: ignore[attr-defined]
    return max(whole.held, math.prod(whole.shape))


def _read_part(stored: StoredArray, part: Part) -> np.ndarray:
    return part.of(stored.read())


def parts_of(
    name: str, shapes: Mapping[str, tuple[int, ...]], heads: Heads
) -> tuple[list[Part], str]:
    """Return the parts of a fused array and the assumed layout; no parts if the layout is unknown."""
    rows, columns = shapes[name]
    words = _words(name)
    names = _named_parts(name, words, shapes)
    if names == ("query", "key", "value"):
        places = query_key_value(words, (rows, columns), heads)
        if isinstance(places, str):
            return [], places
        rows_of = (places.query, places.key, places.value)
        found = [Part(part, places.axis, index) for part, index in zip(names, rows_of, strict=True)]
        return found, places.text
    count, axis = len(names), 0
    if names and rows != count * columns:
        # The shape decides whether inputs come first, else the name.
        first = any(word in INPUTS_FIRST for word in words)
        axis = int(columns == count * rows or (first and columns % count == 0))
    side = (rows, columns)[axis]
    if not names or side % count:
        return [], "not split, because name and shape do not fix its layout"
    indices = tuple(np.arange(side).reshape(count, side // count))
    along = ("rows (outputs x inputs)", "columns (inputs x outputs)")[axis]
    text = f"{', '.join(names[:-1])} and {names[-1]} one after the other in its {along}"
    return [Part(part, axis, index) for part, index in zip(names, indices, strict=True)], text


def _named_parts(
    name: str, words: list[str], shapes: Mapping[str, tuple[int, ...]]
) -> tuple[str, ...]:
    for word in words:
        if word in _PARTS:
            return _PARTS[word]
    found = _RECURRENT.search(words[-1])
    # The square array of a recurrent layer shows the number of gates.
    other = shapes.get(f"{name[: -len(words[-1])]}weight_hh_{found.group(2)}") if found else None
    if other is None or len(other) != 2 or not other[1] or other[0] % other[1]:
        return ()
    return _GATES.get(other[0] // other[1], ())
