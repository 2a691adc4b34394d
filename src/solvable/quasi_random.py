"""Scrambled Sobol points without the import of `scipy.stats`, which takes 0.6 s."""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist

import numpy as np

BITS = 30
"""Number of bits of a point."""

NUMBERS = """
3: 1; 7: 1 3; 11: 1 3 1; 13: 1 1 1; 19: 1 1 3 3; 25: 1 3 5 13; 37: 1 1 5 5 17; 41: 1 1 5 5 5;
47: 1 1 7 11 19; 55: 1 1 5 1 1; 59: 1 1 1 3 11; 61: 1 3 5 5 31; 67: 1 3 3 9 7 49;
91: 1 1 1 15 21 21; 97: 1 3 1 13 27 49; 103: 1 1 1 15 7 5; 109: 1 3 1 15 13 25;
115: 1 1 5 5 19 61; 131: 1 3 7 11 23 15 103; 137: 1 3 7 13 13 15 69; 143: 1 1 3 13 7 35 63;
145: 1 3 5 9 1 25 53; 157: 1 3 1 13 9 35 107; 167: 1 3 1 5 27 61 31; 171: 1 1 5 11 19 41 61;
185: 1 3 5 3 3 13 69; 191: 1 1 7 13 1 19 1; 193: 1 3 7 5 13 19 59; 203: 1 1 3 9 25 29 41;
211: 1 3 5 13 23 1 55; 213: 1 3 7 3 13 59 17; 229: 1 3 1 3 5 53 69; 239: 1 1 5 5 23 33 13;
241: 1 1 7 7 1 61 123; 247: 1 1 7 9 13 61 49; 253: 1 3 3 5 3 55 33; 285: 1 3 1 15 31 13 49 245;
299: 1 3 5 15 31 59 63 97; 301: 1 3 1 11 11 11 77 249; 333: 1 3 1 11 27 43 71 9;
351: 1 1 7 15 21 11 81 45; 355: 1 3 7 3 25 31 65 79; 357: 1 3 1 1 19 11 3 205;
361: 1 1 5 9 19 21 29 157; 369: 1 3 7 11 1 33 89 185; 391: 1 3 3 3 15 9 79 71;
397: 1 3 7 11 15 39 119 27; 425: 1 1 3 1 11 31 97 225; 451: 1 1 1 3 23 43 57 177;
463: 1 3 7 7 17 17 37 71; 487: 1 3 1 5 27 63 123 213; 501: 1 1 3 5 11 43 53 133;
529: 1 3 5 5 29 17 47 173 479; 539: 1 3 3 11 3 1 109 9 69; 545: 1 1 1 5 17 39 23 5 343;
557: 1 3 1 5 25 15 31 103 499; 563: 1 1 1 11 11 17 63 105 183; 601: 1 1 5 11 9 29 97 231 363;
607: 1 1 5 15 19 45 41 7 383; 617: 1 3 7 7 31 19 83 137 221; 623: 1 1 1 3 23 15 111 223 83;
631: 1 1 5 13 31 15 55 25 161; 637: 1 1 3 13 25 47 39 87 257
"""
"""Primitive polynomials over GF(2) as binary numbers, with initial numbers (doi:10.1137/070709359)."""


def sobol_points(columns: int, count: int, seed: int = 0) -> np.ndarray:
    """First points (count, columns) in [0, 1) of a Sobol sequence of up to 64 columns, scrambled."""
    # The points equal those of scipy.stats.qmc.Sobol: random lower triangular matrices act on the bits of
    # the direction numbers, and all points are shifted by random bits.
    rng, powers = np.random.default_rng(seed), 2 ** np.arange(BITS, dtype=np.uint32)
    numbers = _direction_numbers()[:columns]
    points = np.tile(rng.integers(2, size=(columns, BITS), dtype=np.uint32) @ powers, (count, 1))
    mixing = np.tril(rng.integers(2, size=(columns, BITS, BITS), dtype=np.uint32), -1)
    mixing += np.eye(BITS, dtype=np.uint32)
    digits = numbers[:, :, None] // powers[::-1] % 2
    numbers = (digits @ mixing.transpose(0, 2, 1) % 2) @ powers[::-1]
    # point i is the exclusive or of the numbers at the non-zero bits of its Gray code
    order = np.arange(count)
    code = order ^ (order >> 1)
    for bit in range(max(count - 1, 1).bit_length()):
        points[(code >> bit) % 2 == 1] ^= numbers[:, bit]
    return points / 2.0**BITS


def sobol_normals(columns: int, count: int, seed: int = 0) -> np.ndarray:
    """First points (count, columns) of a scrambled Sobol sequence, as standard normal variables."""
    points = np.clip(sobol_points(columns, count, seed), 1e-12, 1 - 1e-12)
    quantile = NormalDist().inv_cdf
    return np.array([quantile(value) for value in points.ravel().tolist()]).reshape(points.shape)


@lru_cache(maxsize=1)
def _direction_numbers() -> np.ndarray:
    """Direction numbers (columns, bits)."""
    rows = [[1] * BITS]
    for entry in NUMBERS.replace("\n", " ").split(";"):
        polynomial, initial = entry.split(":")
        row, degree = [int(number) for number in initial.split()], int(polynomial).bit_length() - 1
        for j in range(degree, BITS):
            number = row[j - degree]
            for k in range(1, degree + 1):
                if int(polynomial) >> (degree - k) & 1:
                    number ^= row[j - k] << k
            row.append(number)
        rows.append(row)
    return np.array(rows, dtype=np.uint32) << np.arange(BITS - 1, -1, -1, dtype=np.uint32)
