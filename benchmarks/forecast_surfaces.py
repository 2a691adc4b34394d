"""Coverage of forecasts over two variables, on loss surfaces of small networks trained here.

Each surface is one target: networks with one hidden layer of six widths, trained on six numbers of
rows, two seeds each. A forecast from the cells with the four smaller widths and numbers of rows is
compared with all other cells. The output is the share of these inside their 90 % intervals, and the
median error.

    python benchmarks/forecast_surfaces.py benchmarks/forecast_surfaces.csv --surfaces 24
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from solvable.forecast import Runs, forecast_surface

WIDTHS, ROWS = (4, 8, 16, 32, 64, 128), (64, 128, 256, 512, 1024, 2048)
KEPT, SEEDS, TEST = 4, 2, 2000


def target(number: int) -> Any:
    """Draw a target: features of decaying strength along directions, one of three kinds, with noise."""
    rng = np.random.default_rng([20261201, number])
    dimension, features = int(rng.integers(8, 25)), int(rng.integers(4, 9))
    directions = np.linalg.qr(rng.normal(size=(dimension, features)))[0]
    strength = np.arange(1, features + 1) ** -rng.uniform(0.3, 1.2)
    kind = ("tanh", "square", "cosine")[number % 3]
    noise = float(rng.choice([0.0, 0.1, 0.3]))

    def draw(rng: np.random.Generator, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = rng.normal(size=(count, dimension))
        z = x @ directions
        parts = {"tanh": np.tanh(2 * z), "square": (z**2 - 1) / 2**0.5, "cosine": np.cos(2 * z)}[
            kind
        ]
        label = parts @ strength / np.linalg.norm(strength) + noise * rng.normal(size=count)
        return torch.tensor(x, dtype=torch.float32), torch.tensor(label, dtype=torch.float32)

    return draw, dimension


def trained(number: int, width: int, rows: int, seed: int) -> float:
    """Train one network, and return its squared error on fresh rows."""
    draw, dimension = target(number)
    rng = np.random.default_rng([number, width, rows, seed])
    torch.manual_seed(int(rng.integers(2**31)))
    x, y = draw(rng, rows)
    net = nn.Sequential(nn.Linear(dimension, width), nn.ReLU(), nn.Linear(width, 1))
    steps = torch.optim.AdamW(net.parameters(), lr=0.01, weight_decay=0.1)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(steps, 300)
    for _ in range(300):
        batch = torch.randint(rows, (min(rows, 128),))
        steps.zero_grad()
        ((net(x[batch])[:, 0] - y[batch]) ** 2).mean().backward()
        steps.step()
        falling.step()
    x, y = draw(rng, TEST)
    with torch.no_grad():
        return float(((net(x)[:, 0] - y) ** 2).mean())


def surface(number: int) -> list[dict[str, Any]]:
    """Train all cells of one surface."""
    return [
        {"surface": number, "width": width, "rows": rows, "seed": seed,
         "loss": trained(number, width, rows, seed)}
        for width in WIDTHS for rows in ROWS for seed in range(SEEDS)
    ]  # fmt: skip


def covered(rows: list[dict[str, Any]]) -> tuple[int, int, float]:
    """Number of held-out runs inside their intervals, of all, and the median relative error."""
    cells = np.array([[float(row["width"]), float(row["rows"])] for row in rows])
    losses = np.array([float(row["loss"]) for row in rows])
    known = (cells[:, 0] <= WIDTHS[KEPT - 1]) & (cells[:, 1] <= ROWS[KEPT - 1])
    found = forecast_surface(
        Runs(("width", "rows"), cells[known], losses[known]), at=cells[~known], resamples=100
    )
    inside = [
        row.lower <= loss <= row.upper
        for row, loss in zip(found.predictions, losses[~known], strict=True)
    ]
    off = [
        abs(row.loss / loss - 1)
        for row, loss in zip(found.predictions, losses[~known], strict=True)
    ]
    return sum(inside), len(inside), float(np.median(off))


def main() -> None:
    """Train the surfaces that the file lacks, and print their coverage."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("output", type=Path)
    parser.add_argument("--surfaces", type=int, default=24)
    parser.add_argument("--first", type=int, default=0, help="number of the first surface")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    numbers = range(asked.first, asked.first + asked.surfaces)
    rows: list[dict[str, Any]] = []
    if asked.output.exists():
        with asked.output.open(newline="") as file:
            rows = list(csv.DictReader(file))
    for number in numbers:
        if not any(int(row["surface"]) == number for row in rows):
            rows += surface(number)
            print(f"surface {number}", file=sys.stderr)
            with asked.output.open("w", newline="") as file:
                writer = csv.DictWriter(file, ["surface", "width", "rows", "seed", "loss"])
                writer.writeheader()
                writer.writerows(rows)
    total = []
    for number in numbers:
        part = [row for row in rows if int(row["surface"]) == number]
        inside, count, off = covered(part)
        total.append((inside, count, off))
        print(f"{number:3} {inside:3} of {count} {100 * off:5.1f} %")
    inside, count = sum(row[0] for row in total), sum(row[1] for row in total)
    middle = np.median([row[2] for row in total])
    print(
        f"inside {inside} of {count} ({100 * inside / count:.0f} %); median error {100 * middle:.1f} %"
    )


if __name__ == "__main__":
    main()
