"""Compare estimated and measured cost of the routes: `python benchmarks/routes.py`.

Prints the CPU time of each route and, in brackets, its ratio to the estimate of `choose_route`. The
chosen route must take less than twice the time of the fastest, or at most 50 ms more.
"""

from __future__ import annotations

import time

import numpy as np
from gemm import gemm_rate, one_thread

from solvable.operators import HermiteFeatures, MomentOperator, leading_eigenpairs
from solvable.operators.routes import possible_routes

CASES = (
    (1, 300, 5_000, "none"),
    (1, 1500, 500, "none"),
    (2, 20, 4_000, "wick"),
    (2, 40, 10_000, "none"),
    (2, 40, 400, "none"),
    (2, 60, 40_000, "wick"),
    (2, 60, 600, "none"),
    (3, 15, 3_000, "none"),
    (3, 15, 300, "none"),
)


def measured(operator: MomentOperator, route: str) -> float:
    start = time.process_time()
    leading_eigenpairs(operator, 6, 6, route=route, rng=0)  # type: ignore[arg-type]
    return time.process_time() - start


def main() -> int:
    fine = True
    with one_thread():
        rate = gemm_rate(dtype=np.float64)
        for degree, dimension, n, correction in CASES:
            rng = np.random.default_rng(0)
            X, T = rng.standard_normal((n, dimension)), rng.standard_normal(n)
            features = HermiteFeatures(degree, dimension)
            operator = MomentOperator(X, T, features, correction=correction)  # type: ignore[arg-type]
            routes = possible_routes(n, features, 12, correction=correction)  # type: ignore[arg-type]
            seconds = {route.name: measured(operator, route.name) for route in routes}
            good = seconds[routes[0].name] <= 2 * min(seconds.values()) + 0.05
            fine &= good
            parts = [f"q={degree} d={dimension} n={n} {correction}:"]
            for route in routes:
                ratio = seconds[route.name] * rate / route.flops
                parts.append(f"{route.name} {seconds[route.name]:.3f} s ({ratio:.2f})")
            print(*parts, "ok" if good else "MISSED")
    return 0 if fine else 1


if __name__ == "__main__":
    raise SystemExit(main())
