"""Codes of quantised weights: eight-bit codes are multiplied by their scales, packed ones are refused."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from solvable.data.weights.stored import StoredArray, broken
from solvable.errors import InvalidData
from solvable.plots.words import counted, listed

# Endings of the names of codes and of their scales, and the number by which the scales are divided.
_SCALES = (
    ("", "_scale_inv", 1.0),  # DeepSeek, in blocks; "inv" is its word for a factor, not a divisor
    ("", "_scale", 1.0),  # compressed-tensors, FBGEMM, ModelOpt
    ("weight", "scale", 1.0), ("weight", "scale_weight", 1.0),  # DeepSeek's own code; ComfyUI
    ("weight", "SCB", 127.0),  # bitsandbytes: the largest entry of each row
    ("_data", "_scale", 1.0), ("_quantized", "_scale", 1.0),  # quanto; ONNX Runtime
)  # fmt: skip

# Several weights in one number: ending of the codes, endings next to them, and who writes them. The first
# of the endings next to them must be there.
_PACKED = (
    ("qweight", ("scales", "qzeros", "g_idx"), "GPTQ or AWQ"),
    ("weight_packed", ("weight_scale", "weight_zero_point"), "compressed-tensors"),
    ("weight", ("weight.absmax", "weight.quant_map", "weight.nested_absmax", "weight.nested_quant_map",
     "weight.quant_state.bitsandbytes__nf4", "weight.quant_state.bitsandbytes__fp4"), "bitsandbytes"),
    ("weight", ("weight_scale_2", "weight_scale"), "ModelOpt"),
    ("weight", ("scales", "biases"), "MLX"),
    ("_blocks", ("_scales",), "MXFP4"),
)  # fmt: skip

_SIGNED, _UNSIGNED = ("i8", "int8"), ("u8", "uint8")

_BEFORE = "pass the weights before quantisation"
_ALONE = f"allowed: scales next to them in the same files. Else {_BEFORE}"


def with_scales(arrays: Sequence[StoredArray]) -> tuple[list[StoredArray], list[str]]:
    """Replace codes by what they stand for, and drop their scales; return a sentence about it."""
    by_name = {stored.name: stored for stored in arrays}
    pairs = [_decoded(stored, by_name) for stored in arrays]
    used = {name for _, names in pairs for name in names}
    kinds = Counter(
        re.split(r"[./]", names[0])[-1] for found, names in pairs if names and not found.fault
    )
    which = listed([f"{ending} ({count})" for ending, count in kinds.items()])
    number = counted(kinds.total(), "array")
    text = f"Eight-bit codes multiplied by their scales: {number}, {which}."
    return [found for found, _ in pairs if found.name not in used], [text] if kinds else []


def _decoded(
    stored: StoredArray, by_name: Mapping[str, StoredArray]
) -> tuple[StoredArray, list[str]]:
    """Return the array that codes stand for, and the names that it uses; others are unchanged."""
    name = stored.name
    if len(stored.shape) < 2 or 0 in stored.shape:
        return stored, []
    for ending, others, maker in _PACKED if stored.integral else ():
        stem = name.removesuffix(ending)
        if name.endswith(ending) and f"{stem}{others[0]}" in by_name:
            reason = f"packed codes of {maker}, several weights in one number; {_BEFORE}"
            found = broken(name, reason, stored.shape, stored.dtype)
            return found, [f"{stem}{other}" for other in others]
    if not (_is_float8(stored) or stored.dtype.lower() in (*_SIGNED, *_UNSIGNED)):
        return stored, []
    for ending, other, divisor in _SCALES:
        scales = by_name.get(f"{name.removesuffix(ending)}{other}")
        if name.endswith(ending) and scales is not None:
            start, _, end = scales.name.rpartition("scale")
            zero = by_name.get(f"{start}zero_point{end}")
            names = [scales.name, *([zero.name] if zero else [])]
            return _joined(stored, scales, zero, divisor), names
    return _without_scales(stored), []


def _is_float8(stored: StoredArray) -> bool:
    return re.fullmatch(r"f(?:loat)?8_?e[45]m[23].*", stored.dtype.lower()) is not None


def _without_scales(stored: StoredArray) -> StoredArray:
    """Refuse codes without scales: integers named as weights, and floats if their size shows it."""
    if _is_float8(stored):
        return replace(stored, reader=partial(_read_unscaled, stored))
    named = re.search(r"(?:weight|kernel|_quantized|_proj|codes)$", stored.name.lower())
    if named is None or stored.dtype.lower() in _UNSIGNED:
        return stored
    return broken(stored.name, f"codes without their scales; {_ALONE}", stored.shape, stored.dtype)


def _read_unscaled(stored: StoredArray, member: int | None = None) -> np.ndarray:
    values = stored.read() if member is None else stored.member(member)
    # Scales bring the largest entry of a block to the largest number of the type, 448 or 57,344; no
    # weight is as large.
    largest = float(max(np.fmax.reduce(values, None), -np.fmin.reduce(values, None)))
    if 240 <= largest < np.inf:
        raise InvalidData(f"codes without their scales: the largest is {largest:g}; {_ALONE}.")
    return values


def _joined(
    codes: StoredArray, scales: StoredArray, zero: StoredArray | None, divisor: float
) -> StoredArray:
    """Return the array that codes and scales stand for, or one that states why there is none."""
    exponents = scales.dtype.lower() in (*_UNSIGNED, "f8_e8m0", "float8_e8m0fnu")
    small = exponents or _is_float8(scales)
    fits = _places(codes.shape, scales.shape)
    reason = ""
    unsigned = codes.dtype.lower() in _UNSIGNED
    if not _is_float8(codes) and (small or (zero is None and unsigned)):
        reason = f"packed four-bit codes; {_BEFORE}"
    elif not fits or (scales.integral and not exponents) or (zero or scales).shape != scales.shape:
        reason = f"its scales {scales.name}, {scales.dtype} of shape {scales.shape}, do not fit"
    elif codes.name.endswith("_quantized") and len(set(fits)) > 1:
        reason = "its scales fit rows and columns, and ONNX Runtime writes both"
    if reason:
        return broken(codes.name, reason, codes.shape, codes.dtype)
    reader = partial(_read_scaled, codes, scales, zero, divisor, *fits[0])
    dtype = f"{codes.dtype} x scales"
    # the spacing of bfloat16, as for other quantised types
    return replace(codes, dtype=dtype, precision=2.0**-7, reader=reader, private=True)


def _places(
    shape: tuple[int, ...], sides: tuple[int, ...]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the ways in which scales fit codes: a shape with as many axes, the block of each axis."""
    ones = (1,) * (len(shape) - len(sides))
    if math.prod(sides) == 1:
        return [((1,) * len(shape), shape)]
    ways = ((*sides, *ones), (*ones, *sides)) if len(sides) <= len(shape) else ()
    pairs = [(way, tuple(map(_block, shape, way))) for way in ways]
    return [(way, blocks) for way, blocks in pairs if all(blocks)]


def _block(side: int, number: int) -> int:
    """Return the length of so many blocks of a side: a power of two, else equal parts, else 0."""
    if number == 1:
        return side
    powers = (2**exponent for exponent in range(side.bit_length()))
    equal = side // number if number and side % number == 0 else 0
    return next((power for power in powers if -(-side // power) == number), equal)


@np.errstate(all="ignore")  # damaged scales give entries that are not finite
def _read_scaled(
    codes: StoredArray, scales: StoredArray, zero: StoredArray | None, divisor: float,
    sides: tuple[int, ...], blocks: tuple[int, ...], member: int | None = None,
) -> np.ndarray:  # fmt: skip
    """Return (codes - zero point) * scale / divisor, of the whole array or of one member."""
    values = codes.read() if member is None else codes.member(member)
    if values.dtype != np.float32 or not codes.private:
        values = values.astype(np.float32)
    factors = scales.read()
    if scales.integral:
        factors = 2.0 ** (factors.astype(np.float32) - 127)  # exponents of MX formats
    factors = np.asarray(factors, dtype=np.float32).reshape(sides) / np.float32(divisor)
    shifts = None if zero is None else zero.read().reshape(sides)
    if member is not None:
        values, block = values[np.newaxis], slice(member // blocks[0], member // blocks[0] + 1)
        factors, shifts = factors[block], None if shifts is None else shifts[block]
        blocks = (1, *blocks[1:])
    for place, start in enumerate(range(0, len(values), blocks[0])):
        part = values[start : start + blocks[0]]
        if shifts is not None:
            part -= _spread(shifts[place], blocks[1:], part.shape[1:])
        part *= _spread(factors[place], blocks[1:], part.shape[1:])
    return values if member is None else values[0]


def _spread(entries: np.ndarray, blocks: tuple[int, ...], sides: tuple[int, ...]) -> np.ndarray:
    """Repeat each entry along its block; axes of length 1 are left to broadcasting."""
    for axis, block in enumerate(blocks):
        if entries.shape[axis] > 1:
            entries = np.repeat(entries, block, axis)
    return entries[tuple(slice(side) for side in sides)]
