"""Arrays with three or more axes: stacks of matrices are split, filters of convolutions are kept."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from solvable.data.weights.stored import StoredArray, broken

_WIDEST = 64  # largest side of a filter that is recognised without its name; ViT has 16 and 32
_MOST = 4096  # largest number of matrices in a stack; models have up to 512 experts


def split_stacks(arrays: Sequence[StoredArray]) -> list[StoredArray]:
    """Split stacks of matrices along their first axis; arrays of unknown layout get a reason instead.

    An array (a, b, c) is a stack if its name contains ``expert``, ``moe`` or ``exps``; or if ``a`` is
    below ``b`` and ``c``, and another such array of the file has the same ``a`` (layers of JAX). It is a
    filter (outputs, inputs, width) if its name contains ``conv``, if it is at most 64 wide, or if it has
    at most 4 inputs. Keras' layouts are known, and leading axes of length 1 are dropped.
    """
    firsts = Counter(stored.shape[0] for stored in arrays if _may_be_stack(stored))
    found: list[StoredArray] = []
    for stored in arrays:
        first, *sides = stored.shape or (0,)
        experts = re.search(r"expert|moe|_exps\b", stored.name.lower()) and len(sides) == 2
        if experts and not _is_known(stored) and min(sides) > 1 and first <= _MOST:
            found += _members(stored, "experts")
        elif _may_be_stack(stored) and firsts[first] > 1:
            found += _members(stored, "matrices")
        else:
            found.append(stored if _is_filter(stored) else _without_ones(stored))
    return found


def _is_known(stored: StoredArray) -> bool:
    """Return True for arrays that need no rule: matrices, named filters, indices, damaged arrays."""
    named = stored.layout or stored.fault or "conv" in stored.name.lower()
    return bool(named) or len(stored.shape) < 3 or 0 in stored.shape or not stored.is_matrix


def _is_filter(stored: StoredArray) -> bool:
    sides = stored.shape
    few = len(sides) == 3 and sides[0] > 1 and sides[1] <= 4
    return few or _is_known(stored) or max(sides[2:]) <= _WIDEST


def _may_be_stack(stored: StoredArray) -> bool:
    if _is_filter(stored) or len(stored.shape) != 3:
        return False
    first, *sides = stored.shape
    return 1 < first < min(*sides, _MOST + 1)


def _members(stored: StoredArray, what: str) -> list[StoredArray]:
    layout = f"one array of {stored.shape[0]} {what}, split along its first axis"
    held = 0 if stored.members else math.prod(stored.shape)
    whole = replace(stored, shape=stored.shape[1:], layout=layout, members=False, held=held)
    return [
        replace(whole, name=f"{stored.name}[{place}]", reader=partial(stored.member, place))
        for place in range(stored.shape[0])
    ]


def _without_ones(stored: StoredArray) -> StoredArray:
    """Drop leading axes of length 1, as position tables have them; refuse what is no matrix then."""
    one = stored
    while len(one.shape) > 2 and one.shape[0] == 1:
        one = replace(one, shape=one.shape[1:], reader=partial(one.member, 0), members=False)
    reason = (
        f"not read: its axes {stored.shape} are no filter of a convolution (at most {_WIDEST} wide), and "
        "neither name nor other arrays show a stack of matrices. In Python pass a dictionary of its "
        "matrices"
    )
    return one if len(one.shape) == 2 else broken(one.name, reason, stored.shape, stored.dtype)
