"""Low-rank adapters: the two factors of an adapter are diagnosed as one product."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from solvable.data.weights.adapter_factors import FACTOR, PAIRS, UNKNOWN
from solvable.data.weights.stored import StoredArray
from solvable.diagnose.attention.factors import product_of, used
from solvable.diagnose.attention.product_law import MINIMUM_WIDTH
from solvable.diagnose.attention.random_signs import SignedHead
from solvable.diagnose.diagnosis import ADAPTER, NOT_FITTED, MatrixDiagnosis
from solvable.diagnose.spectrum import with_magnitude
from solvable.errors import InvalidData
from solvable.plots.numbers import format_number
from solvable.plots.words import counted, listed


def is_factor(name: str) -> bool:
    """Return True for names of the factors of a low-rank adapter."""
    return FACTOR.search(name) is not None


def joined_adapters(arrays: Sequence[StoredArray]) -> list[StoredArray]:
    """Replace the two factors of each adapter by one array with the shape of their product."""
    by_name = {stored.name: stored for stored in arrays}
    joined: dict[str, StoredArray | None] = {}
    for name, first in by_name.items():
        place = FACTOR.search(name)
        if place is None or place[1] not in PAIRS:
            continue
        other = f"{name[: place.start(1)]}{PAIRS[place[1]]}{name[place.end(1) :]}"
        second = by_name.get(other)
        if second is not None and first.is_matrix and second.is_matrix and _multiply(first, second):
            shape = (second.shape[0], math.prod(first.shape[1:]))
            label = f"{name[: place.start()]}[{PAIRS[place[1]]} {place[1]}]"
            product = replace(
                first, name=label, shape=shape, reader=partial(_read_core, first, second)
            )
            joined[name], joined[other] = product, None
    kept = (joined.get(stored.name, stored) for stored in arrays)
    return [stored for stored in kept if stored is not None]


def _multiply(first: StoredArray, second: StoredArray) -> bool:
    # The second factor of a convolution has sides of 1 after the first two.
    return 0 < first.shape[0] == math.prod(second.shape[1:])


def factors_of(stored: StoredArray) -> tuple[StoredArray, StoredArray] | None:
    """Return the factors (r, inputs) and (outputs, r) of a joined adapter; None for other arrays."""
    if isinstance(stored.reader, partial) and stored.reader.func is _read_core:
        first, second = stored.reader.args
        return first, second
    return None


def _read_factors(first: StoredArray, second: StoredArray) -> tuple[np.ndarray, np.ndarray]:
    """Return the factors, both of shape (r, sides)."""
    rank = first.shape[0]
    query, key = second.read().reshape(-1, rank).T, first.read().reshape(rank, -1)
    for factor in (query, key):
        if not np.isfinite(factor).all():
            raise InvalidData(f"{int((~np.isfinite(factor)).sum())} entries are not finite.")
    return np.asarray(query, dtype=np.float64), np.asarray(key, dtype=np.float64)


def _read_core(first: StoredArray, second: StoredArray) -> np.ndarray:
    """Square matrix of the adapter's rank with the singular values of the product that are not zero."""
    query, key = _read_factors(first, second)
    left, right = (np.asarray(np.linalg.qr(one.T, mode="r")) for one in (query, key))
    return np.asarray(left @ right.T)


def multiplied(stored: StoredArray) -> StoredArray:
    """Return an array whose entries are the product, for a joined adapter; else the array itself."""
    pair = factors_of(stored)
    return stored if pair is None else replace(stored, reader=partial(_read_product, *pair))


def _read_product(first: StoredArray, second: StoredArray) -> np.ndarray:
    query, key = _read_factors(first, second)
    return np.asarray(query.T.astype(np.float32) @ key.astype(np.float32))


def adapter_row(
    stored: StoredArray, pair: tuple[StoredArray, StoredArray], seed: int
) -> MatrixDiagnosis:
    """Norm, largest value and stable rank of an adapter, and its directions above random signs."""
    blank = MatrixDiagnosis(stored.name, stored.shape, stored.dtype, NOT_FITTED, "")
    query, key = _read_factors(*pair)
    rank = len(query)
    text = f"{ADAPTER} {rank}, {pair[1].layout or UNKNOWN}"
    units = [float(np.abs(factor).max(initial=0.0)) for factor in (query, key)]
    if 0.0 in units:
        reason = f"{text}: its product is zero, as before training."
        return replace(blank, norm=0.0, largest=0.0, reason=reason)
    factors, product = product_of(query / units[0], key / units[1], stored.precision)
    if not product.rank:
        return replace(blank, norm=0.0, largest=0.0, reason=f"{text}: its product is zero.")
    size = units[0] * units[1]
    row = with_magnitude(replace(blank, values=product.values * size), np.zeros((1, 1)))
    strengths = [format_number(value * size, 3) for value in product.values[: product.rank]]
    if min(rank, *(side - rank for side in stored.shape)) < MINIMUM_WIDTH:
        words = f"too few for a test of directions (at least {MINIMUM_WIDTH}, and sides above it)"
    else:
        count, _ = SignedHead(used(factors, product.rank), product, seed).beyond_signs()
        row, strengths = replace(row, directions=count), strengths[:count]
        verb = "is" if count == 1 else "are"
        words = (
            f"{counted(count, 'direction')} {verb} above those of its factors under random signs"
        )
    words += f", with strengths {listed(strengths, 5)}" if strengths else ""
    return replace(row, values=None, reason=f"{text}: {words}.")


def adapter_sentences(rows: Sequence[MatrixDiagnosis]) -> list[str]:
    """Sentences about updates B A: norm, factor, directions and their strengths; the largest first."""
    pairs = sorted(((row.norm or 0.0, row) for row in rows), key=lambda pair: -pair[0])
    lines = [f"{row.name}: norm {format_number(norm, 3)}; {row.reason}" for norm, row in pairs[:12]]
    return lines + [f"The report has {len(rows) - 12} more."] * (len(rows) > 12)
