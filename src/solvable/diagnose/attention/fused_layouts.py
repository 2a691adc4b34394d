"""Places of query, key and value in arrays that store all three, by the layouts of known libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

# Names of arrays that store query, key and value one after the other, and of arrays that store them
# head by head.
FUSED = ("c_attn", "in_proj_weight", "qkv", "wqkv", "qkv_proj", "attn_qkv", "w_pack")
BY_HEAD = ("query_key_value",)

# Layers that store (inputs, outputs): Conv1D of GPT-2, Dense of flax and Keras. All others store
# (outputs, inputs), like Linear of torch.
INPUTS_FIRST = ("c_attn", "kernel")

# Names under which some models store fewer keys than queries, so that thirds may be wrong.
_GROUPABLE = {"c_attn", "wqkv", "qkv_proj", "attn_qkv"}

# Kinds of model (model_type of config.json) whose query_key_value is stored head by head.
_HEAD_BY_HEAD = {"gpt_neox", "gpt_neox_japanese", "bloom", "persimmon", "fuyu", "chatglm"}
_FALCON = {"falcon", "refinedweb", "refinedwebmodel"}

_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
_KEY_HEADS = ("num_key_value_heads", "n_kv_heads", "num_kv_heads", "n_head_kv", "kv_n_heads")

Layout = Literal["row", "head", "group", ""]


@dataclass(frozen=True)
class Heads:
    """Number of heads, and the source of the number."""

    number: int | None = None  # number of heads of the queries
    keys: int | None = None  # number of heads of the keys, if it is given
    source: str = ""
    model: str = ""  # kind of model, such as "falcon"
    grouped: bool = False  # True for Falcon's newer layout, group by group


@dataclass(frozen=True, eq=False)
class Places:
    """Indices of query, key and value along one axis of an array; heads follow one another."""

    axis: int  # 0 for (outputs, inputs), 1 for (inputs, outputs)
    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    text: str  # the layout in words


def heads_in(table: Mapping[str, object], source: str) -> Heads:
    """Return the number of heads that a configuration states."""
    for inner in ("text_config", "attn_config"):  # multimodal models; MPT and DBRX
        nested = table.get(inner)
        if isinstance(nested, Mapping):
            table = {**nested, **table}
    model = table.get("model_type")
    model = model.lower()[:40] if isinstance(model, str) else ""
    grouped = bool(table.get("new_decoder_architecture"))
    keys = _number(table, _KEY_HEADS)
    if table.get("multi_query_attention"):
        keys = _number(table, ("multi_query_group_num",)) or keys  # ChatGLM2 and later
    if _one_key(model, table) and not grouped:
        keys = 1
    number = _number(table, _HEADS)
    if number is None:  # Whisper, BART: both halves are stated, and one number must fit both
        sides = [_number(table, (f"{half}_attention_heads",)) for half in ("encoder", "decoder")]
        number = sides[0] if sides[0] == sides[1] else None
    return Heads(number, keys, source, model, grouped)


def _one_key(model: str, table: Mapping[str, object]) -> bool:
    return model in (*_FALCON, "gpt_bigcode") and table.get("multi_query", True) is True


def _number(table: Mapping[str, object], names: Sequence[str]) -> int | None:
    for name in names:
        value = table.get(name)
        if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 7:
            value = int(value)
        if type(value) is int and 0 < value < 10**6:
            return value
    return None


def query_key_value(words: Sequence[str], shape: tuple[int, ...], heads: Heads) -> Places | str:
    """Return the places of the three parts, or the reason why the array is not split."""
    layout, fault = _layout(words, heads)
    if fault:
        return fault
    rows, columns = shape
    axis = 0
    if rows != 3 * columns and heads.model != "gpt_bigcode":
        # The shape decides whether inputs come first; else the name.
        first = any(word in INPUTS_FIRST for word in words)
        axis = int(columns == 3 * rows or (first and columns % 3 == 0))
    side, inputs = (rows, columns) if axis == 0 else (columns, rows)
    if layout == "row":
        return _in_a_row(words, side, inputs, axis, heads)
    if heads.number is None:
        return "not split, because its number of heads is unknown; pass --heads"
    return _by_head(side, axis, heads) if layout == "head" else _by_group(side, axis, heads)


def _layout(words: Sequence[str], heads: Heads) -> tuple[Layout, str]:
    by_head = any(word in BY_HEAD for word in words)
    model = heads.model
    if model == "codegen":
        return "", "not split, because CodeGen stores four blocks of query, value and key"
    if by_head and model in _FALCON:
        return ("group" if heads.grouped else "row" if heads.keys == 1 else "head"), ""
    if by_head and model == "chatglm" and heads.keys is not None:
        return "row", ""
    if by_head and model and model not in _HEAD_BY_HEAD:
        return "", f"not split, because the layout of query_key_value in {model} is not known"
    if model == "internlm2" and "wqkv" in words:
        return "group", ""
    if model == "gpt_bigcode" and "c_attn" in words and heads.keys != 1:
        return "head", ""
    return ("head" if by_head else "row"), ""


def _in_a_row(
    words: Sequence[str], side: int, inputs: int, axis: int, heads: Heads
) -> Places | str:
    unknown = "not split, because name and shape do not fix its layout"
    sizes: tuple[int, ...] = ()
    end = ""
    if heads.number and heads.keys not in (None, heads.number):
        # Grouped-query attention has fewer keys and values than queries.
        keys = heads.keys or 0
        width = side // (heads.number + 2 * keys)
        sizes = (width * heads.number, width * keys, width * keys)
        end = f", {heads.number} heads of queries and {keys} of keys ({heads.source})"
    elif side != 3 * inputs and not heads.number and _GROUPABLE & set(words):
        return (
            "not split, because it may hold fewer keys than queries; put config.json next to it, or "
            "pass --heads if queries and keys are as many"
        )
    elif side % 3 == 0:
        sizes = (side // 3,) * 3
    if sum(sizes) != side or 0 in sizes:
        return unknown
    ends = np.cumsum((0, *sizes))
    parts = [np.arange(low, high) for low, high in pairwise(ends)]
    along = ("rows (outputs x inputs)", "columns (inputs x outputs)")[axis]
    text = f"query, key and value one after the other in its {along}{end}"
    return Places(axis, parts[0], parts[1], parts[2], text)


def _by_head(side: int, axis: int, heads: Heads) -> Places | str:
    number = heads.number or 1
    width, left = divmod(side, 3 * number)
    if left or not width:
        return f"not split, because {number} heads do not divide its {side} outputs"
    places = np.arange(side).reshape(number, 3, width)
    source = f" ({heads.source})" if heads.source else ""
    like = "GPT-BigCode" if heads.model == "gpt_bigcode" else "GPT-NeoX and BLOOM"
    text = f"query, key and value of each of {number} heads{source} in turn, as in {like}"
    query, key, value = (places[:, k].ravel() for k in range(3))
    return Places(axis, query, key, value, text)


def _by_group(side: int, axis: int, heads: Heads) -> Places | str:
    number = heads.number or 1
    keys = heads.keys or number
    queries, left = divmod(number, keys)
    width, rest = divmod(side, number + 2 * keys)
    if left or rest or not width:
        return (
            f"not split, because {number} heads of queries and {keys} of keys do not divide its {side} "
            "outputs"
        )
    places = np.arange(side).reshape(keys, queries + 2, width)
    text = (
        f"{queries} queries, a key and a value of each of {keys} groups ({heads.source}) in turn, as in "
        "Falcon-40B and InternLM2"
    )
    query, key, value = places[:, :-2].ravel(), places[:, -2].ravel(), places[:, -1].ravel()
    return Places(axis, query, key, value, text)
