"""Smallest rank of each matrix that keeps the held-out loss within 1 %, against what its spectrum says.

python benchmarks/diagnose_ranks.py [--seeds 3]      # trains, and writes diagnose_ranks.csv
python benchmarks/diagnose_ranks.py --from-records   # table of the rows that are stored
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from solvable.diagnose import diagnose_file
from solvable.diagnose.measured_ranks import measure_ranks
from solvable.plots import Figure, Series

HERE = Path(__file__).parent
RECORDS = HERE / "diagnose_ranks.csv"
NAMES = (
    "mlp-digits-sgd", "mlp-digits-adam-l2", "conv-digits-adamw", "conv-digits-sgd", "mlp-mnist-adamw",
    "mlp-mnist-sgd", "mlp-mnist-sgd-strong", "mlp-mnist-noisy-labels", "mlp-mnist-rmsprop",
    "conv-mnist-adam", "mixer-mnist-adamw", "autoencoder-mnist-adam", "window-adamw",
    "transformer-64-adam",
)  # fmt: skip
QUANTITIES = ("directions", "stable_rank", "rank_95", "new_directions", "rank_of_change")


def rows_of(name: str, seed: int) -> list[dict[str, float | str | int | None]]:
    """Train one network, and measure all its matrices."""
    import torch
    from diagnose_networks import NETWORKS, held_out_loss, train

    (network,) = (one for one in NETWORKS if one.name == name)
    model, before = train(network, seed)
    state = {key: value.detach().numpy().copy() for key, value in model.state_dict().items()}

    def loss(arrays: dict[str, np.ndarray]) -> float:
        model.load_state_dict({key: torch.from_numpy(value) for key, value in arrays.items()})
        return held_out_loss(network, model)

    needed = {row.name: row for row in measure_ranks(state, loss).rows}
    start = {key: value.numpy() for key, value in before.items()}
    found = []
    for row in diagnose_file(state, initial=start, laws=False):
        if row.name not in needed or row.initial is None or row.initial.difference is None:
            continue
        squares = np.linalg.svd(state[row.name].reshape(row.shape[0], -1), compute_uv=False) ** 2
        held = int(np.searchsorted(np.cumsum(squares), 0.95 * squares.sum())) + 1
        found.append(
            {
                "network": name,
                "seed": seed,
                "matrix": row.name,
                "values": len(squares),
                "needed": needed[row.name].rank,
                "directions": row.directions,
                "stable_rank": row.stable_rank,
                "rank_95": held,
                "new_directions": row.initial.difference.directions,
                "rank_of_change": row.initial.rank,
            }
        )
    return found


def correlation(rows: list[dict[str, float]], quantity: str) -> tuple[float, float, float]:
    """Rank correlation with the needed rank, and its 95 % interval by a bootstrap over networks."""
    rows = [row for row in rows if np.isfinite(row[quantity])]
    pairs = {
        name: np.array([[r["needed"], r[quantity]] for r in rows if r["network"] == name])
        for name in dict.fromkeys(row["network"] for row in rows)
    }
    rng = np.random.default_rng(0)
    names = list(pairs)
    draws = []
    for _ in range(2_000):
        chosen = np.concatenate(
            [pairs[names[k]] for k in rng.integers(len(names), size=len(names))]
        )
        draws.append(spearmanr(*chosen.T).statistic)
    whole = spearmanr(*np.concatenate(list(pairs.values())).T).statistic
    return float(whole), *(float(end) for end in np.quantile(draws, [0.025, 0.975]))


def stored() -> list[dict[str, float]]:
    """Read the rows, as numbers where they are numbers."""
    with RECORDS.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    text = ("network", "matrix")
    return [
        {name: value if name in text else float(value or "nan") for name, value in row.items()}
        for row in rows
    ]


def show(rows: list[dict[str, float]]) -> None:
    """Print the table, and draw all points."""
    networks = len({row["network"] for row in rows})
    print(f"{len(rows)} matrices of {networks} networks")
    tests: dict[str, Callable[[dict[str, float]], bool]] = {
        "the loss needs no direction": lambda row: row["needed"] == 0,
        "the loss needs at most the counted directions": lambda row: (
            row["needed"] <= row["directions"]
        ),
        "the loss needs more than half of the rank": lambda row: 2 * row["needed"] > row["values"],
    }
    for text, holds in tests.items():
        print(f"{text}: {sum(map(holds, rows))} of {len(rows)}")
    for quantity in QUANTITIES:
        value, low, high = correlation(rows, quantity)
        print(f"rank correlation with {quantity}: {value:+.2f} ({low:+.2f} to {high:+.2f})")


def figure(rows: list[dict[str, float]]) -> Figure:
    """Draw the needed rank of all matrices against two numbers of their spectra."""
    networks = len({row["network"] for row in rows})
    shown = [("directions", "directions, at least"), ("rank_of_change", "rank of the change")]
    needed = np.array([row["needed"] for row in rows])
    series = [
        Series(
            label, np.array([row[name] for row in rows]) + 1, needed + 1, kind="points", colour=k
        )
        for k, (name, label) in enumerate(shown)
    ]
    ends = np.array([1.0, 1.0 + max(row["values"] for row in rows)])
    series.append(Series("equal", ends, ends, kind="dashed", colour=3))
    return Figure(
        "diagnose-ranks",
        "Rank that the loss needs",
        "1 + number from the spectrum",
        "1 + smallest rank within 1 % of the loss",
        series,
        f"{len(rows)} matrices of {networks} networks, three trainings each.",
        x_scale="log",
        y_scale="log",
    )


def main() -> None:
    """Train, measure and store, or read what is stored; then show it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--from-records", action="store_true")
    given = parser.parse_args()
    if not given.from_records:
        rows = []
        for name in NAMES:
            for seed in range(given.seeds):
                rows += rows_of(name, seed)
                print(f"{name} {seed}: {len(rows)} matrices", flush=True)
        with RECORDS.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    show(stored())


if __name__ == "__main__":
    main()
