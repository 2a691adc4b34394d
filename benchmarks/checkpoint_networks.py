"""Small networks that overfit and small networks that do not, with checkpoints and held-out losses.

    python benchmarks/checkpoint_networks.py DIRECTORY [--seeds 2] [--only NAME]

Each network is saved at ten times, evenly spaced in the logarithm of the steps. ``losses.csv`` receives
one row per checkpoint: network, seed, step, loss on the training rows, loss and error on held-out rows.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import diagnose_networks as networks
import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

FILE = "losses.csv"


@dataclass(frozen=True)
class Run:
    """An architecture with its rows and its training."""

    name: str
    kind: str  # "MLP", "convolutional", "transformer"
    build: Callable[[], nn.Module]
    data: str  # "mnist", "digits", "text"
    rows: int  # number of training rows, or of characters
    wrong: float  # share of wrong training labels
    optimiser: str
    rate: float
    decay: float
    steps: int


class Measured(NamedTuple):
    """Losses at one checkpoint."""

    network: str
    kind: str
    seed: int
    step: int
    training_loss: float
    loss: float
    error: float


def _mlp() -> nn.Module:
    return networks.mlp(784, 256, 256, 10)


def _conv() -> nn.Module:
    return networks.convolutional(8, 32)


def _transformer() -> nn.Module:
    return networks.Transformer(64)


RUNS = (
    Run("mlp-300-rows", "MLP", _mlp, "mnist", 300, 0.0, "Adam", 1e-3, 0.0, 2000),
    Run("mlp-all-rows", "MLP", _mlp, "mnist", 3333, 0.0, "Adam", 1e-3, 0.0, 2000),
    Run("mlp-all-rows-decay", "MLP", _mlp, "mnist", 3333, 0.0, "SGD", 0.05, 5e-3, 2000),
    Run("mlp-wrong-labels", "MLP", _mlp, "mnist", 3333, 0.3, "Adam", 1e-3, 0.0, 2000),
    Run("mlp-wrong-labels-decay", "MLP", _mlp, "mnist", 3333, 0.3, "SGD", 0.05, 1e-2, 2000),
    Run("mlp-300-rows-sgd", "MLP", _mlp, "mnist", 300, 0.0, "SGD", 0.05, 0.0, 2000),
    Run("conv-100-rows", "convolutional", _conv, "digits", 100, 0.0, "Adam", 2e-3, 0.0, 1500),
    Run("conv-all-rows", "convolutional", _conv, "digits", 1198, 0.0, "Adam", 1e-3, 0.0, 1000),
    Run("conv-all-rows-decay", "convolutional", _conv, "digits", 1198, 0.0,
        "SGD", 0.05, 5e-3, 1500),
    Run("conv-wrong-labels", "convolutional", _conv, "digits", 1198, 0.3, "Adam", 2e-3, 0.0, 1500),
    Run("conv-wrong-labels-decay", "convolutional", _conv, "digits", 1198, 0.3,
        "SGD", 0.05, 1e-2, 1500),
    Run("conv-100-rows-decay", "convolutional", _conv, "digits", 100, 0.0, "SGD", 0.05, 5e-3, 1500),
    Run("transformer-10k", "transformer", _transformer, "text", 10_000, 0.0, "Adam", 2e-3, 0.0, 1200),
    Run("transformer-30k", "transformer", _transformer, "text", 30_000, 0.0, "Adam", 2e-3, 0.0, 1200),
    Run("transformer-all", "transformer", _transformer, "text", 10**9, 0.0, "Adam", 2e-3, 0.0, 1200),
    Run("transformer-all-decay", "transformer", _transformer, "text", 10**9, 0.0,
        "AdamW", 2e-3, 0.3, 1200),
    Run("transformer-10k-decay", "transformer", _transformer, "text", 10_000, 0.0,
        "AdamW", 2e-3, 1.0, 1200),
    Run("transformer-all-sgd", "transformer", _transformer, "text", 10**9, 0.0, "SGD", 0.2, 1e-3, 1200),
)  # fmt: skip


def saved_steps(steps: int, count: int = 10) -> list[int]:
    """Return the initial step and the times of the checkpoints."""
    return [0, *(int(step) for step in np.unique(np.geomspace(20, steps, count).round()))]


def _rows(run: Run, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Training inputs and targets, then those held out."""
    x, y, held, targets = networks._split(run.data)
    x, y = x[: run.rows], y[: run.rows].clone()
    if run.wrong:
        rng = np.random.default_rng(seed)
        wrong = torch.from_numpy(rng.random(len(y)) < run.wrong)
        y[wrong] = torch.from_numpy(rng.integers(0, 10, int(wrong.sum())))
    return x, y, held, targets


def _windows(text: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
    length = networks.LETTERS
    pieces = torch.stack([text[k : k + length + 1] for k in starts.tolist()])
    return pieces[:, :-1], pieces[:, 1:]


def _losses(model: nn.Module, x: Tensor, y: Tensor) -> tuple[float, float]:
    """Mean cross entropy and share of wrong answers."""
    model.eval()
    with torch.no_grad():
        answer = model(x)
        wrong = (answer.argmax(1) != y).float().mean()
        loss = float(functional.cross_entropy(answer, y))
    model.train()
    return loss, float(wrong)


def train(run: Run, seed: int) -> Iterator[tuple[int, nn.Module, Measured]]:
    """Train a network, and yield it with its losses at each checkpoint."""
    torch.manual_seed(seed)
    model = run.build()
    options = {"lr": run.rate, "weight_decay": run.decay}
    if run.optimiser == "SGD":
        options["momentum"] = 0.9
    optimiser = getattr(torch.optim, run.optimiser)(model.parameters(), **options)
    x, y, held, targets = _rows(run, seed)
    generator = torch.Generator().manual_seed(seed)
    text = run.data == "text"
    last = len(x) - networks.LETTERS - 1
    seen = _windows(x, torch.linspace(0, last - 1, 300).long()) if text else (x[:1000], y[:1000])
    times = set(saved_steps(run.steps))
    for step in range(run.steps + 1):
        if step in times:
            training = _losses(model, *seen)[0]
            yield (
                step,
                model,
                Measured(run.name, run.kind, seed, step, training, *_losses(model, held, targets)),
            )
        if text:
            inputs, wanted = _windows(x, torch.randint(last, (32,), generator=generator))
        else:
            rows = torch.randint(len(x), (64,), generator=generator)
            inputs, wanted = x[rows], y[rows]
        loss = functional.cross_entropy(model(inputs), wanted)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()


def folder(directory: Path, network: str, seed: int) -> Path:
    """Return the folder with the checkpoints of a network."""
    return directory / f"{network}-seed-{seed}"


def read(directory: Path) -> list[Measured]:
    """Read the losses of all checkpoints."""
    with (directory / FILE).open() as stream:
        return [
            Measured(
                row["network"], row["kind"], int(row["seed"]), int(row["step"]),
                *(float(row[name]) for name in ("training_loss", "loss", "error")),
            )
            for row in csv.DictReader(stream)
        ]  # fmt: skip


def main() -> None:
    """Train the networks that are not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    asked.directory.mkdir(parents=True, exist_ok=True)
    table = asked.directory / FILE
    done = {(row.network, row.seed) for row in read(asked.directory)} if table.exists() else set()
    for seed in range(asked.seeds):
        for run in RUNS:
            if asked.only not in run.name or (run.name, seed) in done:
                continue
            place = folder(asked.directory, run.name, seed)
            place.mkdir(exist_ok=True)
            rows = []
            for step, model, measured in train(run, seed):
                arrays = {name: value.contiguous() for name, value in model.state_dict().items()}
                save_file(arrays, place / f"step-{step}.safetensors")
                rows.append(measured)
            new = not table.exists()
            with table.open("a", newline="") as stream:
                writer = csv.writer(stream)
                if new:
                    writer.writerow(Measured._fields)
                writer.writerows(rows)
            losses = [row.loss for row in rows]
            print(
                f"{run.name} {seed}: held-out loss {min(losses):.3f} at its best, "
                f"{losses[-1]:.3f} at the end",
                flush=True,
            )


if __name__ == "__main__":
    main()
