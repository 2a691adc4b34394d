"""Learning rates chosen at a small width and carried to a large one, with and without factors.

Six networks are trained at widths 64 and 512 over a grid of learning rates, as they are built and with
the factors of `solvable.scale.width_rules`. The output compares the best rates, and the held-out losses
at width 512 with the best rate of width 64.

    python benchmarks/width_transfer.py benchmarks/width_transfer.csv
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from solvable.scale import rescale_start, width_rules
from solvable.scale.widths.rules import groups_of, multiplied

F = nn.functional
BASE, LARGE = 64, 512
RATES = 2.0 ** np.arange(-12, -3)
STEPS, ROWS, SEEDS, TOKENS = 150, 32, 3, 4


class Residual(nn.Module):
    """Two gated blocks with residual connections and norms."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(30, width), nn.Linear(width, 1)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.up = nn.ModuleList(nn.Linear(width, 2 * width, bias=False) for _ in range(2))
        self.gate = nn.ModuleList(nn.Linear(width, 2 * width, bias=False) for _ in range(2))
        self.down = nn.ModuleList(nn.Linear(2 * width, width, bias=False) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Outputs of shape (rows,)."""
        h = self.first(x)
        for norm, up, gate, down in zip(self.norms, self.up, self.gate, self.down, strict=True):
            z = norm(h)
            h = h + down(F.silu(gate(z)) * up(z))
        return self.last(h)[:, 0]


class Sequence(nn.Module):
    """A transformer block, with heads of 16, or an LSTM, over tokens."""

    def __init__(self, width: int, kind: str) -> None:
        super().__init__()
        self.tokens, self.last = nn.Embedding(20, width), nn.Linear(width, 10)
        self.places = nn.Parameter(0.1 * torch.randn(TOKENS, width))
        self.block: nn.Module
        if kind == "transformer":
            self.block = nn.TransformerEncoderLayer(
                width, width // 16, width, dropout=0.0, batch_first=True, norm_first=True
            )
        else:
            self.block = nn.LSTM(width, width, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of shape (rows, 10)."""
        h = self.block(self.tokens(x) + self.places)
        return self.last((h[0] if isinstance(h, tuple) else h)[:, -1])


class Bag(nn.Module):
    """Mean of embeddings and a hidden layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.tokens, self.hidden = nn.Embedding(20, width), nn.Linear(width, width)
        self.last = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of shape (rows, 10)."""
        return self.last(F.relu(self.hidden(self.tokens(x).mean(1))))


def mlp(width: int) -> nn.Module:
    """Two hidden layers on the 64 pixels of a digit."""
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                         nn.Linear(width, 10))  # fmt: skip


def cnn(width: int) -> nn.Module:
    """Two convolutions on the 8 x 8 pixels of a digit."""
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, width // 4, 3, padding=1), nn.ReLU(),
        nn.Conv2d(width // 4, width // 4, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(1),
        nn.Unflatten(1, (width // 4, 16)), Mean(), nn.Linear(width // 4, 10),
    )  # fmt: skip


class Mean(nn.Module):
    """Mean over the positions."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Inputs of shape (rows, channels, positions)."""
        return x.mean(2)


def digits() -> Callable[[torch.Generator, int], tuple[torch.Tensor, torch.Tensor]]:
    """Rows of scikit-learn's digits with noise of a tenth."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    rows, labels = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)

    def draw(stream: torch.Generator, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        place = torch.randint(len(rows), (count,), generator=stream)
        return rows[place] + 0.1 * torch.randn(count, 64, generator=stream), labels[place]

    return draw


def multi_index(stream: torch.Generator, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A product and a sum of functions of four directions, with label noise."""
    x = torch.randn(count, 30, generator=stream)
    label = x[:, 0] * x[:, 1] + torch.tanh(2 * x[:, 2]) + 0.5 * (x[:, 3] ** 2 - 1)
    return x, label + 0.1 * torch.randn(count, generator=stream)


def lookup(stream: torch.Generator, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The class is the first token plus the one before the last, modulo ten."""
    x = torch.randint(10, (count, TOKENS), generator=stream)
    return x, (x[:, 0] + x[:, 2]) % 10


def commonest(stream: torch.Generator, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The class is the sum of all tokens that are below six, modulo ten."""
    x = torch.randint(20, (count, TOKENS), generator=stream)
    return x, (x * (x < 6)).sum(1) % 10


TASKS: dict[str, tuple[Callable[[int], nn.Module], Any]] = {
    "mlp, digits": (mlp, digits()),
    "cnn, digits": (cnn, digits()),
    "gated residual, multi-index": (Residual, multi_index),
    "transformer, two tokens": (lambda width: Sequence(width, "transformer"), lookup),
    "lstm, small tokens": (lambda width: Sequence(width, "lstm"), commonest),
    "embeddings, small tokens": (Bag, commonest),
}


def loss_of(output: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    """Squared error, or cross-entropy for classes."""
    if label.dtype == torch.long:
        return F.cross_entropy(output, label)
    return ((output - label) ** 2).mean()


def trained(name: str, width: int, corrected: bool, rate: float, seed: int) -> float:
    """Train on fresh rows, and return the loss on 2,000 other ones."""
    make, draw = TASKS[name]
    torch.manual_seed(seed)
    base, module = make(BASE), make(width)
    example, _ = draw(torch.Generator().manual_seed(0), 2)
    groups: list[dict[str, Any]] = [{"params": list(module.parameters()), "lr": rate}]
    rules = width_rules(module, base, inputs=example, base_inputs=example)
    if corrected:
        rescale_start(module, rules)
        groups = groups_of(rules, module, rate, 0.0)
    steps = torch.optim.AdamW(groups, weight_decay=0.0)
    falling = torch.optim.lr_scheduler.LambdaLR(steps, lambda step: 1 - step / STEPS)
    stream = torch.Generator().manual_seed(1000 + seed)
    with multiplied(module, rules) if corrected else torch.enable_grad():
        for _ in range(STEPS):
            rows, labels = draw(stream, ROWS)
            steps.zero_grad()
            loss_of(module(rows), labels).backward()
            steps.step()
            falling.step()
        with torch.no_grad():
            rows, labels = draw(torch.Generator().manual_seed(77), 2000)
            found = float(loss_of(module(rows), labels))
    return found if np.isfinite(found) else float("inf")


def measured(names: list[str]) -> Iterator[dict[str, Any]]:
    """Yield one row for each task, width, treatment, rate and seed."""
    for name in names:
        for width, corrected in ((BASE, False), (LARGE, False), (LARGE, True)):
            started = time.process_time()
            for rate in RATES:
                for seed in range(SEEDS):
                    loss = trained(name, width, corrected, float(rate), seed)
                    yield {"task": name, "width": width, "corrected": corrected,
                           "rate": float(rate), "seed": seed, "loss": loss}  # fmt: skip
            print(
                f"{name}, {width}, {corrected}: {time.process_time() - started:.0f} s",
                file=sys.stderr,
            )


def carried(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Rows of the table: best rates, and losses at width 512 with the best rate of width 64."""
    table = [["task", "best rate at 64", "best at 512, as built", "best at 512, with factors",
              "loss with the rate of 64, as built", "with factors",
              "with the best rate, as built"]]  # fmt: skip
    for name in dict.fromkeys(row["task"] for row in rows):
        curves = {}
        for width, corrected in ((BASE, False), (LARGE, False), (LARGE, True)):
            held = [r for r in rows if (r["task"], int(r["width"]), str(r["corrected"]))
                    == (name, width, str(corrected))]  # fmt: skip
            curves[width, corrected] = {
                rate: np.array([float(r["loss"]) for r in held if float(r["rate"]) == rate])
                for rate in sorted({float(r["rate"]) for r in held})
            }
        best = {
            key: min(curve, key=lambda rate: curve[rate].mean()) for key, curve in curves.items()
        }
        small, built = best[BASE, False], curves[LARGE, False]
        losses = (built[small], curves[LARGE, True][small], built[best[LARGE, False]])
        cells = [
            f"{loss.mean():.3g} ± {loss.std(ddof=1) / len(loss) ** 0.5:.1g}" for loss in losses
        ]
        table.append([name, *(f"1/{1 / rate:.0f}" for rate in best.values()), *cells])
    return table


def main() -> None:
    """Measure the tasks that the file lacks, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("output", type=Path)
    path = parser.parse_args().output
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    if path.exists():
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    missing = [name for name in TASKS if name not in {row["task"] for row in rows}]
    for name in missing:
        rows += list(measured([name]))
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, ["task", "width", "corrected", "rate", "seed", "loss"])
            writer.writeheader()
            writer.writerows(rows)
    print("\n".join(" | ".join(row) for row in carried(rows)))


if __name__ == "__main__":
    main()
