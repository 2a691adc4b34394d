r"""Wick correction: the lower chaoses of a product of two features, which the operator subtracts.

With U, V read as symmetric tensors of q indices and f_U = <U, F>, the product formula of Wiener
chaos is

    f_U f_V = sum_r r! C(q, r)² / q!  I_{2q - 2r}(U (x)_r V),

where (x)_r contracts r indices and I_m(S) = <S, He_m(x)>. The term r = q is <U, V>; the term r = 0
is the part that the corrected operator keeps; the other terms are contracted here with the
label-weighted means of He_2 and He_4. For q = 2 only 2 I_2(UV) is left; for q = 3,
(3/2) I_4(U (x)_1 V) + 3 I_2(U (x)_2 V).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from solvable.arrays import Array, namespace
from solvable.operators._cubic import Cubic
from solvable.operators._engines import Quadratic, as_like

Contraction: TypeAlias = Callable[[Array], Array]
"""Correction that the moment operator subtracts: a linear map on vectors (D, k)."""


def _there(matrix: np.ndarray) -> Callable[[Array], Array]:
    """Matrix B_1 on an array's device; the copy is made once."""
    held: dict[tuple[str, str], Array] = {}

    def like(U: Array) -> Array:
        if isinstance(U, np.ndarray):
            return matrix
        key = namespace(U).__name__, str(U.device)
        if key not in held:
            held[key] = as_like(matrix, U)
        return held[key]

    return like


def quadratic_contraction(engine: Quadratic, second_moment: np.ndarray) -> Contraction:
    """Correction of degree 2, U -> B_1 U + U B_1, with B_1 = (1/n) sum T (x x^T - I).

    This is what (sequential 20) subtracts.
    """
    second = _there(second_moment)

    def apply(U: Array) -> Array:
        xp = namespace(U)
        matrices = engine.to_symmetric(U)
        half = xp.matmul(matrices, second(U))
        return engine.from_symmetric(half + xp.matrix_transpose(half))

    return apply


def cubic_contraction(engine: Cubic, second_moment: np.ndarray, fourth: np.ndarray) -> Contraction:
    """Correction of degree 3, from B_1 and the matrix of the corrected operator of degree 2."""
    d = engine.dimension
    second, fourth_there = _there(second_moment), _there(fourth)

    def apply(U: Array) -> Array:
        xp = namespace(U)
        count = U.shape[1]
        flat = engine.to_tensor(U)
        slices = xp.reshape(flat, (d * d, d * count))
        pairs = engine.pairs.from_symmetric(
            xp.permute_dims(xp.reshape(slices, (d, d, d * count)), (2, 0, 1))
        )
        of_fourth = engine.pairs.to_symmetric(fourth_there(U) @ pairs)
        of_fourth = xp.permute_dims(of_fourth, (1, 2, 0))
        of_second = second(U) @ xp.reshape(flat, (d, d * d * count))
        total = xp.reshape(of_fourth, (d**3, count)) + xp.reshape(of_second, (d**3, count))
        return 3 * engine.from_tensor(total)

    return apply
