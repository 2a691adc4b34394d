"""CPU time of ``--quick`` over that of the Gram matrix and its eigenvalues, and a randomised route.

    python benchmarks/diagnose_quick.py [--sizes 512 1024 2048 4096]

Square matrices of noise with three signals, in single precision, on one thread; each time is the median
of runs that take turns. The randomised route takes the norm from the entries, the largest values from
Lanczos steps, and the spectrum from a stochastic Lanczos quadrature with 10 vectors and 80 steps. It
must give the same answers: the edge, the number of values beyond it, and a bulk that is not refuted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from gemm import exit_status, one_thread, show
from scipy.sparse.linalg import svds

from solvable.diagnose.bulk_fit import BulkFit, fit_bulk
from solvable.diagnose.quick import quick_row
from solvable.diagnose.quick_result import QuickRow
from solvable.errors import InvalidData

PROBES, STEPS = 10, 80


def drawn(size: int) -> np.ndarray:
    """Noise of scale 1 with three signals of strength 2.5, 2 and 1.5."""
    rng = np.random.default_rng(size)
    matrix = rng.standard_normal((size, size), dtype=np.float32) / np.float32(size**0.5)
    for strength in (2.5, 2.0, 1.5):
        left, right = (rng.standard_normal(size, dtype=np.float32) for _ in range(2))
        matrix += np.float32(strength / size) * np.outer(left, right)
    return matrix


def quick(matrix: np.ndarray) -> QuickRow:
    """Return the row of the command."""
    return quick_row(QuickRow("w", matrix.shape, "float32"), matrix)


def reference(matrix: np.ndarray) -> np.ndarray:
    """Eigenvalues of the product of the matrix with itself, in double precision."""
    wide = matrix.astype(np.float64)
    return np.linalg.eigvalsh(wide @ wide.T)


def eigenvalues_alone(matrix: np.ndarray) -> float:
    """Return the CPU time of the eigenvalues without the product."""
    wide = matrix.astype(np.float64)
    product = wide @ wide.T
    started = time.process_time()
    np.linalg.eigvalsh(product)
    return time.process_time() - started


def density(matrix: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the distribution of squared singular values; all vectors in one product."""
    size = len(matrix)
    basis = np.zeros((STEPS + 1, size, PROBES), dtype=np.float32)
    basis[0] = rng.choice(np.float32([-1, 1]), (size, PROBES)) / np.float32(size**0.5)
    diagonal, beside = np.zeros((STEPS, PROBES)), np.zeros((STEPS, PROBES))
    for k in range(STEPS):
        new = matrix @ (matrix.T @ basis[k])
        diagonal[k] = (new * basis[k]).sum(axis=0)
        for probe in range(PROBES):  # orthogonal to all earlier vectors
            earlier = basis[: k + 1, :, probe]
            new[:, probe] -= (earlier @ new[:, probe]) @ earlier
        beside[k] = np.linalg.norm(new, axis=0)
        basis[k + 1] = new / beside[k]
    nodes, weights = [], []
    for probe in range(PROBES):
        tridiagonal = np.diag(diagonal[:, probe]) + sum(
            np.diag(beside[:-1, probe], offset) for offset in (-1, 1)
        )
        found, vectors = np.linalg.eigh(tridiagonal)
        nodes.append(found)
        weights.append(vectors[0] ** 2 / PROBES)
    return np.concatenate(nodes), np.concatenate(weights)


def randomised(matrix: np.ndarray) -> tuple[np.ndarray, BulkFit | None]:
    """Return the largest values and the bulk from products of the matrix with vectors alone."""
    rng = np.random.default_rng(0)
    size = len(matrix)
    tops = np.sort(svds(matrix, k=8, v0=np.ones(size), return_singular_vectors=False))[::-1]
    nodes, weights = density(matrix, rng)
    order = np.argsort(nodes)
    # The masses of the nodes lie half below and half above each node.
    masses = np.cumsum(weights[order]) - weights[order] / 2
    squares = np.interp((np.arange(size) + 0.5) / size, masses, nodes[order])
    values = np.sqrt(np.maximum(squares, 1e-9))
    values[-len(tops) :] = tops[::-1]
    try:
        return tops, fit_bulk(values, matrix.shape)
    except InvalidData:
        return tops, None


def seconds(function: Callable[[np.ndarray], object], matrix: np.ndarray) -> float:
    """CPU time of one call."""
    started = time.process_time()
    function(matrix)
    return time.process_time() - started


def main() -> None:
    """Measure all sizes, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[512, 1024, 2048, 4096])
    sizes = parser.parse_args().sizes
    quick(drawn(256)), randomised(drawn(256))
    print(
        "| size | quick / (product + eigvalsh) | quick / eigvalsh | randomised / quick | edge | p |"
    )
    print("|---|---|---|---|---|---|")
    worst = 0.0
    for size in sizes:
        matrix = drawn(size)
        rounds = {512: 7, 1024: 5, 2048: 3}.get(size, 1)
        times = np.array(
            [
                [seconds(f, matrix) for f in (quick, reference, randomised)]
                + [eigenvalues_alone(matrix)]
                for _ in range(rounds)
            ]
        )
        mine, whole, drawn_time, alone = np.median(times, axis=0)
        row, (_, fit) = quick(matrix), randomised(matrix)
        edge = f"{row.edge:.3f}, {row.beyond} beyond" if row.edge else "none"
        other = f"{fit.edge:.3f}, {fit.n_outliers} beyond" if fit else "none"
        p_value = f"{fit.p_value:.3f}" if fit else "–"
        print(
            f"| {size} | {mine / whole:.2f} | {mine / alone:.2f} | {drawn_time / mine:.2f} | "
            f"{edge}; randomised {other} | {p_value} |",
            flush=True,
        )
        worst = max(worst, mine / alone)
    show("--quick over eigvalsh of the product", worst, 3, at_least=False)


if __name__ == "__main__":
    with one_thread():
        main()
    raise SystemExit(exit_status())
