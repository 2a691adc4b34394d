"""Measure the predictions of a trained attention head at 20 sample ratios, on one BLAS thread.

python benchmarks/attention_theory.py
"""

from __future__ import annotations

import numpy as np
from gemm import cpu_seconds, exit_status, one_thread, show


def main() -> None:
    """Measure the CPU time of 20 predictions with their first order in 1/d."""
    from solvable.models.attention.single_head import predict
    from solvable.models.attention.single_head.parameters import SingleHeadParameters

    def twenty() -> None:
        predict._state.cache_clear()
        predict._orders.cache_clear()
        for ratio in np.geomspace(0.15, 1.2, 20):
            predict.predict(SingleHeadParameters(sample_ratio=float(ratio)))

    show("20 predictions of a head, two tokens, s", cpu_seconds(twenty, 2), 4, at_least=False)


if __name__ == "__main__":
    with one_thread():
        main()
    raise SystemExit(exit_status())
