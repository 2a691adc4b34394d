"""Lower bounds of `solvable diagnose`: false directions in noise, planted ones that are counted.

Run: python benchmarks/diagnose_directions.py [MATRICES] [FILE OF WEIGHTS]
"""

from __future__ import annotations

import sys
import time

import numpy as np

from solvable.arrays import random_stream
from solvable.data.weights.opening import open_weights
from solvable.diagnose import diagnose_file, diagnose_matrix
from solvable.diagnose.directions import directions_of
from solvable.diagnose.matrix import blas
from solvable.diagnose.spectrum import read_spectrum

SHAPE = (96, 192)
NOISE = {
    "Gaussian": lambda rng: rng.standard_normal(SHAPE),
    "uniform": lambda rng: rng.uniform(-1, 1, SHAPE),
    "Student-t(3)": lambda rng: rng.standard_t(3, SHAPE),
    "rows of unequal variance": lambda rng: rng.standard_normal(SHAPE) * rng.gamma(1, size=(96, 1)),
    "8 bits": lambda rng: np.clip(np.round(32 * rng.standard_normal(SHAPE)), -128, 127),
    "4 bits": lambda rng: np.clip(np.round(2 * rng.standard_normal(SHAPE)), -8, 7),
    "Student-t(3), 8 x 64": lambda rng: rng.standard_t(3, (8, 64)),
}


def bound(matrix: np.ndarray, seed: int) -> int:
    """Return the lower bound of a matrix."""
    return diagnose_matrix(matrix, laws=False, seed=seed).directions or 0


def planted(rng: np.random.Generator, strengths: np.ndarray) -> np.ndarray:
    """Return noise of variance 1/q with signals of generic directions."""
    p, q = SHAPE
    left, right = (np.linalg.qr(rng.standard_normal((side, strengths.size)))[0] for side in SHAPE)
    return rng.standard_normal((p, q)) / q**0.5 + (left * strengths) @ right.T


def spoilt(matrix: np.ndarray, how: str, rng: np.random.Generator) -> np.ndarray:
    """Return the matrix with one outlying part."""
    matrix = matrix.copy()
    if how == "entry":
        matrix[17, 5] = 30.0
    elif how == "row":
        matrix[17] = 8 * rng.standard_normal(SHAPE[1])
    elif how == "column":
        matrix[:, 9] = 8 * rng.standard_normal(SHAPE[0])
    elif how == "mean":
        matrix += 0.3
    return matrix


def ratio(weights: str) -> float:
    """CPU time of all bounds over that of each product with itself and its eigenvalues."""
    mine = whole = 0.0
    with blas().limit(limits=1):
        for stored in open_weights(weights).arrays:
            if not stored.is_matrix or not 30 <= min(stored.shape) <= max(stored.shape) < 5_000:
                continue
            matrix = stored.read()
            start = time.process_time()
            wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
            np.linalg.eigvalsh(wide @ wide.T)
            middle = time.process_time()
            directions_of(read_spectrum(matrix, stored.precision, exact=False), 0)
            whole, mine = whole + middle - start, mine + time.process_time() - middle
    return mine / whole


def main(count: int, weights: str | None) -> None:
    """Print one line per family of noise, per outlying part, and for a file of weights."""
    for name, draw in NOISE.items():
        false = sum(bool(bound(draw(random_stream(k, "benchmark", name)), k)) for k in range(count))
        print(f"noise, {name}: {false} of {count} matrices have a direction")
    for how in ("nothing", "entry", "row", "column", "mean"):
        counted = more = 0
        for k in range(count):
            rng = random_stream(k, "benchmark", how)
            # The weakest of six lies at 1.3 times the edge.
            found = bound(spoilt(planted(rng, np.linspace(1.81, 8, 6)), how, rng), k)
            extra = how in ("row", "column", "mean")  # such a part is a direction of its own
            counted += min(found, 6)
            more += found > 6 + extra
        print(f"6 planted, {how}: {counted / 6 / count:.3f} counted, {more} of {count} with more")
    if weights:
        start = time.process_time()
        rows = [row for row in diagnose_file(weights, laws=False) if row.directions is not None]
        none = [row.name for row in rows if not row.directions]
        seconds = time.process_time() - start
        print(f"{weights}: {len(rows)} matrices, none in {none}; {seconds:.0f} s of CPU")
        print(f"bounds over product and eigvalsh: {ratio(weights):.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, sys.argv[2] if len(sys.argv) > 2 else None)
