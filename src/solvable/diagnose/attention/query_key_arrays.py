"""Query and key arrays of a file, and the position of each head in these arrays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from solvable.data.weights.opening import open_weights
from solvable.data.weights.stored import StoredArray
from solvable.diagnose.adapters import is_factor
from solvable.diagnose.attention.fused_layouts import (
    BY_HEAD,
    FUSED,
    INPUTS_FIRST,
    Heads,
    heads_in,
    query_key_value,
)
from solvable.errors import InvalidData, InvalidParameter
from solvable.plots.words import listed

# Whole words in array names that mark a query and the matching key.
NAMES = {
    "query": "key", "q_proj": "k_proj", "q_lin": "k_lin", "to_q": "to_k", "wq": "wk", "w_q": "w_k",
    "q": "k", "query_proj": "key_proj", "linear_q": "linear_k", "q_proj_weight": "k_proj_weight",
    "attn_q": "attn_k",
}  # fmt: skip


@dataclass(frozen=True)
class AttentionPair:
    """Query and key arrays of one layer."""

    name: str  # common part of their names
    query: StoredArray
    key: StoredArray  # key array; the query's array if query, key and value are stored as one
    fused: bool = False  # True if one array holds query, key and value
    inputs_first: bool = False  # True if each row belongs to one input

    def factors(self, heads: Heads) -> list[tuple[np.ndarray, np.ndarray]]:
        """Yield each head's query (h, d) and key (h, D)."""
        query = self.query.read()
        return self._of_heads(query, query if self.key is self.query else self.key.read(), heads)

    def check(self, heads: Heads) -> None:
        """Raise if the shapes of query and key exclude a product."""
        query, key = (
            np.broadcast_to(np.float32(0), stored.shape) for stored in (self.query, self.key)
        )
        self._of_heads(query, key, heads)

    def _of_heads(
        self, query: np.ndarray, key: np.ndarray, heads: Heads
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        for stored, array in ((self.query, query), (self.key, key)):
            if array.ndim != 2 or not array.size:
                raise InvalidData(
                    f"{stored.name} has the shape {array.shape}; a query or key has two axes, outputs "
                    "and inputs."
                )
            if array.dtype.kind not in "fiub":
                raise InvalidData(f"{stored.name}: its type {array.dtype} is not of real numbers.")
        if self.fused:
            return _taken_apart(self, query, heads)
        if self.inputs_first:
            query, key = query.T, key.T
        return _pairs(self, query, key, heads)


def _pairs(
    pair: AttentionPair, query: np.ndarray, key: np.ndarray, heads: Heads
) -> list[tuple[np.ndarray, np.ndarray]]:
    number = heads.number or 1
    width, left = divmod(query.shape[0], number)
    sizes = f"{query.shape[0]} x {query.shape[1]} and {key.shape[0]} x {key.shape[1]}"
    if left or not width:
        raise InvalidData(
            f"{pair.name}: {number} heads do not divide the {query.shape[0]} outputs of "
            f"{pair.query.name}; pass the right --heads."
        )
    # Several queries may share one key (grouped-query attention).
    shared, left = divmod(key.shape[0], width)
    if left or not shared or number % shared or (shared != number and number == 1):
        raise InvalidData(
            f"{pair.name}: query and key do not multiply: they are {sizes} (outputs x inputs), "
            f"with {number} heads of {width}."
        )
    group = number // shared
    return [
        (
            query[k * width : (k + 1) * width],
            key[(k // group) * width : (k // group + 1) * width],
        )
        for k in range(number)
    ]


def _taken_apart(
    pair: AttentionPair, whole: np.ndarray, heads: Heads
) -> list[tuple[np.ndarray, np.ndarray]]:
    words = [word.lower() for word in _words(pair.query.name)[::2]]
    places = query_key_value(words, whole.shape, heads)
    if isinstance(places, str):
        raise InvalidData(
            f"{pair.query.name}, of {whole.shape[0]} x {whole.shape[1]}, is {places}; or store query and "
            "key separately and pass --pair."
        )
    if places.axis:
        whole = whole.T
    return _pairs(pair, whole[places.query], whole[places.key], heads)


def named_pairs(arrays: Sequence[StoredArray]) -> tuple[list[AttentionPair], list[str]]:
    """Query-key pairs found by name; also queries without a key and keys without a query."""
    # PEFT stores the weights under an adapter as "q_proj.base_layer.weight".
    by_name = {
        stored.name.replace(".base_layer.", "."): stored
        for stored in arrays
        if stored.is_matrix and not is_factor(stored.name)
    }
    pairs, alone = [], []
    for name, stored in by_name.items():
        if _is_fused(name):
            pairs.append(AttentionPair(_shared(name), stored, stored, fused=True))
            continue
        other = _counterpart(name, NAMES)
        if other is None:
            back = _counterpart(name, {key: query for query, key in NAMES.items()})
            if back is not None and back not in by_name and _layer(name) > 0:
                alone.append(f"{name} (no {back})")
        elif other in by_name:
            pair = AttentionPair(_shared(name), stored, by_name[other], False, _inputs_first(name))
            pairs.append(pair)
        elif _layer(name) > 0:
            alone.append(f"{name} (no {other})")
    return pairs, alone


def _words(name: str) -> list[str]:
    """Split a name into words and separators: "a.q.weight" becomes a, ., q, ., weight."""
    return re.split(r"([./:])", name)


def _counterpart(name: str, names: dict[str, str]) -> str | None:
    """Name of a query's key: the last word that marks a query is replaced."""
    words = _words(name)
    for place in reversed(range(0, len(words), 2)):
        other = names.get(words[place].lower())
        if other is not None:
            shown = other.upper() if words[place].isupper() else other
            if words[place][:1].isupper() and not words[place].isupper():
                shown = other[:1].upper() + other[1:]
            return "".join([*words[:place], shown, *words[place + 1 :]])
    return None


def _layer(name: str) -> int:
    """Number of words before the last; an array named only "k" is not an attention array."""
    return (len(_words(name)) - 1) // 2


def _is_fused(name: str) -> bool:
    return any(word.lower() in (*FUSED, *BY_HEAD) for word in _words(name)[::2])


def _inputs_first(name: str) -> bool:
    return any(word.lower() in INPUTS_FIRST for word in _words(name)[::2])


def _shared(name: str) -> str:
    """Common part of a query's and its key's names: the words before the first difference."""
    words = _words(name)
    known = {*NAMES, *FUSED, *BY_HEAD}
    for place in reversed(range(0, len(words), 2)):
        if words[place].lower() in known:
            return "".join(words[:place]).rstrip("./:") or name
    return name


def asked_pairs(
    arrays: Sequence[StoredArray], asked: Sequence[tuple[str, str]], inputs_first: bool
) -> list[AttentionPair]:
    """Query-key pairs of the arrays that the user named."""
    by_name = {stored.name: stored for stored in arrays}
    pairs = []
    for names in asked:
        for name in names:
            if name not in by_name:
                raise InvalidData(
                    f"--pair: there is no array {name!r}; the file has {listed(list(by_name), 5)}."
                )
        query, key = (by_name[name] for name in names)
        first = inputs_first or all(_inputs_first(name) for name in names)
        pair = AttentionPair(_common(*names), query, key, False, first)
        pairs.append(pair)
    return pairs


def _common(query: str, key: str) -> str:
    shared = _shared(query)
    return shared if shared != query and key.startswith(shared) else f"{query}, {key}"


def heads_of(source: Any, number: int | None) -> Heads:
    """Number of heads: given by the user, by the file, or by config.json next to the file."""
    stated = [heads_in(table, where) for where, table in open_weights(source).settings]
    model = next((heads.model for heads in stated if heads.model), "")
    grouped = any(heads.grouped for heads in stated)
    found = next((heads for heads in stated if heads.number), Heads())
    if number is not None:
        keys = found.keys if found.number == number else None
        return Heads(number, keys, "--heads", model, grouped)
    return replace(found, model=model, grouped=grouped)


def check_heads(number: int | None) -> None:
    """Raise if the number of heads is not a whole number above zero."""
    if number is not None and number < 1:
        raise InvalidParameter(f"--heads is {number}; allowed: whole numbers from 1.")
