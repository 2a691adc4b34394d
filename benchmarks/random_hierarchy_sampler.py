"""Measure random hierarchies: `python benchmarks/random_hierarchy_sampler.py`.

Prints the CPU time per string of the sampler, with and without replacement, over that of a Python loop
over strings and symbols, and the CPU time of a million strings of (32, 8, 2, 6), of parsing, numbering
and belief propagation.
"""

from __future__ import annotations

import random
import sys

from gemm import cpu_seconds, exit_status, one_thread, show

from solvable.models.hierarchy.target import RandomHierarchy

SIZES = ((8, 4, 2, 3), (16, 8, 2, 3), (8, 3, 3, 3), (32, 8, 2, 6))


def one_by_one(target: RandomHierarchy, n: int) -> list[list[int]]:
    """Draw strings by a loop over strings and symbols, with rules in lists."""
    tables = [table.tolist() for table in target.tables]
    strings = []
    for _ in range(n):
        symbols = [random.randrange(target.n_classes)]
        for table in tables:
            symbols = [child for parent in symbols for child in random.choice(table[parent])]
        strings.append(symbols)
    return strings


def sampler(target: RandomHierarchy) -> None:
    sizes = (target.vocabulary, target.rules, target.branching, target.depth)
    loop = cpu_seconds(lambda: one_by_one(target, 1000), 3) / 1000
    n = 100_000
    drawn = cpu_seconds(lambda: target.sample(n, rng=0)) / n
    different = cpu_seconds(lambda: target.sample(n, rng=0, replace=False)) / n
    print(f"{sizes}: {1e6 * drawn:.2f} us a string, {1e6 * different:.2f} us without replacement")
    show(f"{sizes}: Python loop over the sampler", loop / drawn, 20)
    show(f"{sizes}: Python loop over the sampler without replacement", loop / different, 10)


def main() -> None:
    for sizes in SIZES:
        sampler(RandomHierarchy(*sizes))
    target = RandomHierarchy(32, 8, 2, 6)
    million = cpu_seconds(lambda: target.sample(1_000_000, rng=0), 2)
    show("a million strings of (32, 8, 2, 6)", million, 3, at_least=False, unit=" s")
    X, _ = target.sample(100_000, rng=0)
    show(
        "parse 100,000 strings", cpu_seconds(lambda: target.parse(X)), 1, at_least=False, unit=" s"
    )
    few = X[:1000]
    ranks = cpu_seconds(lambda: target.unrank(target.rank(few)))
    show("rank and unrank 1,000 strings", ranks, 0.1, at_least=False, unit=" s")
    evidence = target.noisy_evidence(few, 0.5)
    beliefs = cpu_seconds(lambda: target.belief_propagation(evidence), 3)
    show("belief propagation of 1,000 strings", beliefs, 1, at_least=False, unit=" s")


if __name__ == "__main__":
    with one_thread():
        main()
    sys.exit(exit_status())
