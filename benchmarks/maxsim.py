"""Compare MaxSim scores of token sets with their matrix product: `python benchmarks/maxsim.py`.

Prints the CPU time of `maxsim_matrix` over that of the bare products of all tokens of queries and
documents, in float32 and in chunks of 2,048 tokens of documents, timed alternately. Sizes: an index of
passages with one query and with 32 queries, sentences in a training batch, and passages of different
lengths.
"""

from __future__ import annotations

import numpy as np
from gemm import cpu_seconds, exit_status, one_thread, show

from solvable.models.late_interaction.scoring import TokenSets, maxsim_matrix

CASES = (
    # what, dimension, tokens of a query, of a document (least, most), queries, documents
    ("one query, passages", 128, 32, (180, 180), 1, 6_000),
    ("32 queries, passages", 128, 32, (180, 180), 32, 400),
    ("batch of sentences", 64, 24, (64, 64), 64, 1_200),
    ("32 queries, passages of different lengths", 128, 32, (20, 180), 32, 700),
)


def main() -> int:
    rng = np.random.default_rng(0)
    for what, dimension, length, (least, most), queries, documents in CASES:
        lengths = rng.integers(least, most + 1, documents)
        left = rng.standard_normal((queries, length, dimension)).astype(np.float32)
        tokens = rng.standard_normal((lengths.sum(), dimension)).astype(np.float32)
        right = TokenSets(tokens, lengths)
        flat = left.reshape(-1, dimension).T

        def product(tokens: np.ndarray = tokens, flat: np.ndarray = flat) -> None:
            for start in range(0, len(tokens), 2_048):
                tokens[start : start + 2_048] @ flat

        ratios = [
            cpu_seconds(lambda q=left, d=right: maxsim_matrix(q, d), 2) / cpu_seconds(product, 2)
            for _ in range(5)
        ]
        show(what, float(np.median(ratios)), 1.5, at_least=False)
    return exit_status()


if __name__ == "__main__":
    with one_thread():
        raise SystemExit(main())
