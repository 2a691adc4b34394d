"""Train a fully connected network by gradient descent in torch (extra torch)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import NotConverged
from solvable.fitting.devices import import_torch, torch_device

TRAINABLE = ("relu", "sigmoid", "tanh", "erf", "gelu", "identity", "square", "cube", "cos", "sin")
"""Names of the activations with a nonzero gradient."""

DIVERGED = 100.0
"""Training has diverged if its loss exceeds the loss of a constant prediction by this factor."""

Loss: TypeAlias = Literal["squared", "cross-entropy"]
"""Name of the loss function that training minimises."""


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of the training."""

    widths: tuple[int, ...]  # number of neurons in each hidden layer
    activation: str
    loss: Loss  # mean over rows, summed over outputs; cross-entropy of one output takes -1 and 1
    optimiser: Literal["adam", "sgd"]  # Adam with decoupled weight decay, or plain descent
    step_size: float | Literal["auto"]
    momentum: float  # momentum of "sgd"; Adam has a momentum of its own
    weight_decay: float
    batch_size: int | None  # rows per step; None for all rows
    max_epochs: int
    patience: int  # number of epochs without progress after which training ends
    device: str  # device in torch's notation
    seed: int  # seed of the initial weights and of the order of rows


@dataclass(frozen=True)
class Epoch:
    """Losses after one epoch."""

    number: int  # number of the epoch, from 1
    training_loss: (
        float  # mean training loss over batches; each batch's loss is computed before its step
    )
    validation_loss: float  # loss on validation rows; training loss if there are no validation rows


@dataclass(frozen=True)
class TrainedNetwork:
    """Network with the weights of the best epoch, and the history of its training."""

    weights: tuple[np.ndarray, ...]  # weights of each layer, shape (n_in, n_out), float32
    biases: tuple[np.ndarray, ...]  # biases of each layer, shape (n_out,), float32
    history: tuple[Epoch, ...]
    best_epoch: int  # epoch whose weights are kept; 0 for the initial weights
    stopped_reason: str
    step_size: float  # step size that was used


class _Network:
    """Parameters of a network on a device, and its outputs."""

    def __init__(self, torch: Any, sizes: Sequence[int], settings: TrainingSettings) -> None:
        self.torch = torch
        self.activation = _activation(torch, settings.activation)
        # NumPy draws the initial weights, which then do not depend on torch's version or device.
        rng = random_stream(settings.seed, "initial weights")
        device = torch_device(torch, settings.device)
        self.weights, self.biases = [], []
        for level, (fan_in, fan_out) in enumerate(pairwise(sizes)):
            gain = 2.0 if settings.activation == "relu" and level else 1.0
            drawn = rng.standard_normal((fan_in, fan_out)) * np.sqrt(gain / fan_in)
            self.weights.append(torch.tensor(drawn, dtype=torch.float32, device=device))
            self.biases.append(torch.zeros(fan_out, dtype=torch.float32, device=device))
        self.parameters = [*self.weights, *self.biases]
        for parameter in self.parameters:
            parameter.requires_grad_(True)

    def __call__(self, rows: Any) -> Any:
        for weights, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            rows = self.activation(rows @ weights + bias)
        return rows @ self.weights[-1] + self.biases[-1]

    def snapshot(self) -> list[Any]:
        """Copies of the parameters on their device."""
        return [parameter.detach().clone() for parameter in self.parameters]

    def mean_squared_gradient(self, rows: Any) -> float:
        total = 0.0
        for row in rows:
            for output in self(row[None])[0]:
                grads = self.torch.autograd.grad(output, self.parameters, retain_graph=True)
                total += sum(float((grad**2).sum()) for grad in grads)
        return total / len(rows)


def train_network(
    inputs: np.ndarray,
    targets: np.ndarray,
    kept: np.ndarray,
    apart: np.ndarray,
    settings: TrainingSettings,
) -> TrainedNetwork:
    """Descend until the validation loss has not fallen for ``patience`` epochs."""
    torch = import_torch()
    network = _Network(torch, [inputs.shape[1], *settings.widths, targets.shape[1]], settings)
    device = network.weights[0].device
    rows, wanted = (
        torch.tensor(array, dtype=torch.float32, device=device) for array in (inputs, targets)
    )
    # Thirty-two rows are enough to choose the step size of plain gradient descent.
    step_size = _step_size(network, rows[kept[:32]], settings)
    measure = _measure(torch, settings.loss)
    reference = _constant_loss(torch, measure, wanted[kept])
    optimiser = _optimiser(torch, network.parameters, settings, step_size)
    history: list[Epoch] = []
    best, lowest, state = 0, np.inf, network.snapshot()
    reason = f"all {settings.max_epochs} epochs made"
    for number in range(1, settings.max_epochs + 1):
        training = 0.0
        for batch in _batches(kept, settings, number):
            part = torch.as_tensor(batch, device=device)
            optimiser.zero_grad()
            value = measure(network(rows[part]), wanted[part])
            value.backward()
            optimiser.step()
            training += float(value.detach()) * len(batch) / len(kept)
        with torch.no_grad():
            held = float(measure(network(rows[apart]), wanted[apart])) if len(apart) else training
        _refuse_divergence(number, training, held, reference, step_size)
        history.append(Epoch(number, training, held))
        if held < lowest:
            best, lowest, state = number, held, network.snapshot()
        elif number - best >= settings.patience:
            reason = f"the validation loss has not fallen for {settings.patience} epochs"
            break
    depth, arrays = len(network.weights), [np.array(part.cpu().numpy()) for part in state]
    return TrainedNetwork(
        tuple(arrays[:depth]), tuple(arrays[depth:]), tuple(history), best, reason, step_size
    )


def _batches(kept: np.ndarray, settings: TrainingSettings, number: int) -> Iterator[np.ndarray]:
    if settings.batch_size is None or settings.batch_size >= len(kept):
        yield kept
        return
    order = kept[random_stream(settings.seed, "epoch", number).permutation(len(kept))]
    for start in range(0, len(order), settings.batch_size):
        yield order[start : start + settings.batch_size]


def _step_size(network: _Network, rows: Any, settings: TrainingSettings) -> float:
    if settings.step_size != "auto":
        return float(settings.step_size)
    if settings.optimiser == "adam":
        return 1e-3
    # 1 / E|grad_theta f|² at the start, which no eigenvalue of the tangent kernel passes.
    return 1 / network.mean_squared_gradient(rows)


def _constant_loss(torch: Any, measure: Any, wanted: Any) -> float:
    """Loss of the mean of the targets; of output 0 for cross-entropy, which it cannot beat by far."""
    with torch.no_grad():
        mean = wanted.mean(0).expand_as(wanted)
        return max(min(float(measure(mean, wanted)), float(measure(0 * mean, wanted))), 1e-12)


def _refuse_divergence(
    number: int, training: float, held: float, reference: float, step_size: float
) -> None:
    # Validation rows may be harder than any constant on the others; they must only be finite.
    if training <= DIVERGED * reference and np.isfinite(held):
        return
    raise NotConverged(
        f"training diverged in epoch {number}: training loss {training:.3g}, validation loss "
        f"{held:.3g}, where a constant prediction has {reference:.3g}. Lower step_size = "
        f"{step_size:.3g}, or let it be 'auto'.",
        {"epoch": number, "training_loss": training, "validation_loss": held},
    )


def _measure(torch: Any, loss: Loss) -> Any:
    """Mean loss over rows, as a function of outputs and targets."""
    if loss == "squared":
        return lambda outputs, wanted: ((outputs - wanted) ** 2).sum(1).mean()

    def cross_entropy(outputs: Any, wanted: Any) -> Any:
        if outputs.shape[1] == 1:
            return torch.nn.functional.softplus(-outputs * wanted).mean()
        return -(torch.log_softmax(outputs, 1) * wanted).sum(1).mean()

    return cross_entropy


def _optimiser(torch: Any, parameters: Any, settings: TrainingSettings, step_size: float) -> Any:
    if settings.optimiser == "adam":
        return torch.optim.AdamW(parameters, lr=step_size, weight_decay=settings.weight_decay)
    return torch.optim.SGD(
        parameters, lr=step_size, momentum=settings.momentum, weight_decay=settings.weight_decay
    )


def _activation(torch: Any, name: str) -> Any:
    return {
        "relu": torch.relu,
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "erf": torch.erf,
        "gelu": torch.nn.functional.gelu,
        "identity": lambda t: t,
        "square": torch.square,
        "cube": lambda t: t**3,
        "cos": torch.cos,
        "sin": torch.sin,
    }[name]
