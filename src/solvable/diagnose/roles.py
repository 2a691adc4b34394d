"""Roles of arrays by name and shape: embeddings, and projections stored together in one array."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from solvable.data.weights.stored import StoredArray
from solvable.diagnose.attention.fused_layouts import (
    BY_HEAD,
    FUSED,
    INPUTS_FIRST,
    Heads,
    query_key_value,
)

Role = Literal["", "embedding", "fused"]

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

# Names of modules whose rows belong to tokens, positions or classes: full names, ...
_TABLES = {"wte", "wpe", "shared", "lm_head", "unembed", "unembedding", "embed_out"}
# ... names with one of these words, unless another word names a layer behind an embedding, ...
_EMBEDDED = {"embed", "embeds", "embedding", "embeddings", "embedder", "emb", "embs", "embd"}
_PROJECTED = {
    "patch", "patches", "proj", "projection", "project", "projector", "linear", "mlp", "fc",
    "dense", "conv", "norm", "mapping", "layers",
}  # fmt: skip
# ... and names with all of these words.
_PLACES = {
    "tok", "token", "tokens", "pos", "position", "positions", "positional", "type", "types",
    "word", "words", "char", "chars", "vocab", "cls",
}  # fmt: skip
_LOOKED_UP = {"table", "encoding", "encodings", "id", "ids", "lookup"}
_SUFFIXES = {"weight", "weights", "kernel", "w", "embedding", "embeddings", "table"}


@dataclass(frozen=True)
class Part:
    """Part of a fused array."""

    name: str  # name of the part, such as "query"
    axis: int  # axis along which the parts are concatenated
    rows: np.ndarray  # indices of the part along the axis

    def of(self, whole: np.ndarray) -> np.ndarray:
        """Return the part of an array."""
        return np.take(whole, self.rows, axis=self.axis)


def role_of(name: str, shape: tuple[int, ...]) -> Role:
    """Return the role of a matrix, recognised by its name and shape."""
    # A part of a fused array, such as "in_proj_weight[query]", is an ordinary matrix.
    if len(shape) != 2 or name.endswith("]"):
        return ""
    words = _words(name)
    if any(word in _PARTS or word in _UNSPLIT or _RECURRENT.match(word) for word in words):
        return "fused"
    return "embedding" if _is_embedding(words) else ""


def _words(name: str) -> list[str]:
    # Keras numbers its arrays, for example "embedding/embeddings:0".
    return [word for word in re.split(r"[./:]", re.sub(r":\d+$", "", name.lower())) if word]


def _is_embedding(words: list[str]) -> bool:
    # The module names the array: "wte" of "transformer.wte.weight". An entry of a list, such as
    # "time_embed.0.weight", is a layer.
    module = words[-2:-1] if len(words) > 1 and words[-1] in _SUFFIXES else words[-1:]
    if not module:
        return False
    if module[0] in _TABLES:
        return True
    parts = {part for part in re.split(r"[_\d-]+", module[0]) if part}
    if parts & _PROJECTED:
        return False
    rest = parts - _LOOKED_UP
    return bool(parts & _EMBEDDED) or (bool(rest) and rest <= _PLACES)


def split_arrays(arrays: Iterable[StoredArray], heads: Heads) -> Iterator[StoredArray]:
    """Yield the arrays of a file, with fused projections split, and the layout assumed for each."""
    arrays = list(arrays)
    shapes = {stored.name: stored.shape for stored in arrays}
    for stored in arrays:
        if stored.integral or role_of(stored.name, stored.shape) != "fused":
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
    return math.prod((stored.reader.args[0] if part else stored).shape)  # type: ignore[attr-defined]


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
