"""Training of a user's torch module: one recipe, printed with the results (extra torch)."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidData, NotConverged
from solvable.fitting.devices import chosen_device, import_torch, torch_device
from solvable.paths import error_line

STEPS, STEP_SIZE, BATCH_ROWS, VALIDATION = 4_000, 1e-3, 128, 0.15

RECIPE = (
    f"Adam with step {STEP_SIZE:g} (falling to 0 as a cosine), batches of {BATCH_ROWS}, {STEPS:,} steps, "
    f"{VALIDATION:.0%} of the rows for validation, the best step kept"
)
"""How torch modules are trained, in words; a module may have a method ``fit`` of its own instead."""


class TorchLearner:
    """A torch module with ``fit`` and ``predict``.

    Parameters
    ----------
    module : torch.nn.Module
        Network from rows of inputs to outputs, shape (n, outputs) or (n,).
    classes : bool
        Train on classes by cross-entropy.
    seed : int
        Seed of batches and validation rows.
    """

    def __init__(self, module: Any, *, classes: bool, seed: int) -> None:
        self.module, self.classes, self.seed = copy.deepcopy(module), classes, seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> TorchLearner:
        """Train by the recipe on the device of the study."""
        torch = import_torch()
        torch.manual_seed(self.seed)
        for layer in self.module.modules():
            if hasattr(layer, "reset_parameters"):
                layer.reset_parameters()  # each replicate has its own start
        self._device = torch_device(torch, chosen_device() or "cpu")
        self.module.to(self._device)
        rows = torch.as_tensor(np.asarray(X, dtype=np.float32), device=self._device)
        wanted = self._prepared(torch, y)
        rng = random_stream(self.seed, "torch recipe")
        order = rng.permutation(len(rows))
        apart, kept = np.split(order, [max(1, round(VALIDATION * len(rows)))])
        optimiser = torch.optim.Adam(self.module.parameters(), lr=STEP_SIZE)
        falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)
        best, lowest = None, np.inf
        place, batches = 0, rng.permutation(kept)
        for step in range(1, STEPS + 1):
            if place + BATCH_ROWS > len(batches):
                place, batches = 0, rng.permutation(kept)
            part = torch.as_tensor(batches[place : place + BATCH_ROWS], device=self._device)
            place += BATCH_ROWS
            self.module.train()
            optimiser.zero_grad()
            loss = self._loss(torch, rows[part], wanted[part])
            loss.backward()
            optimiser.step()
            falling.step()
            if step % (STEPS // 60) == 0:
                self.module.eval()
                with torch.no_grad():
                    held = float(self._loss(torch, rows[apart], wanted[apart]))
                if not np.isfinite(held):
                    raise NotConverged(
                        f"training of {type(self.module).__name__} diverged at step {step}; give it a "
                        "method fit of its own."
                    )
                if held < lowest:
                    lowest, best = held, copy.deepcopy(self.module.state_dict())
        if best is not None:
            self.module.load_state_dict(best)
        return self

    def _prepared(self, torch: Any, y: np.ndarray) -> Any:
        if self.classes:
            self.classes_, encoded = np.unique(y, return_inverse=True)
            return torch.as_tensor(encoded, device=self._device)
        labels = np.asarray(y, dtype=np.float64)
        self._single = labels.ndim == 1
        labels = labels.reshape(len(labels), -1)
        self._mean, self._scale = labels.mean(0), np.where(labels.std(0) > 0, labels.std(0), 1.0)
        scaled = ((labels - self._mean) / self._scale).astype(np.float32)
        return torch.as_tensor(scaled, device=self._device)

    def _called(self, rows: Any, columns: int | None) -> Any:
        try:
            outputs = self.module(rows)
        except Exception as error:  # a user's module may raise anything
            raise InvalidData(
                f"{type(self.module).__name__} raised {error_line(error)} on rows of shape "
                f"{tuple(rows.shape)}; allowed: a module for float32 rows of that width."
            ) from error
        if outputs.ndim == 1:
            outputs = outputs[:, None]
        shape = tuple(outputs.shape)
        if len(shape) != 2 or shape[0] != len(rows) or (columns and shape[1] < columns):
            raise InvalidData(
                f"{type(self.module).__name__} returns shape {shape} for {len(rows)} rows; allowed: "
                f"({len(rows)}, {columns})."
            )
        return outputs

    def _loss(self, torch: Any, rows: Any, wanted: Any) -> Any:
        if self.classes:
            outputs = self._called(rows, len(self.classes_))
            return torch.nn.functional.cross_entropy(outputs, wanted)
        outputs = self._called(rows, wanted.shape[1])
        return ((outputs[:, : wanted.shape[1]] - wanted) ** 2).mean()

    def _outputs(self, X: np.ndarray) -> np.ndarray:
        torch = import_torch()
        self.module.eval()
        blocks = []
        with torch.no_grad():
            for start in range(0, len(X), 4096):
                part = np.asarray(X[start : start + 4096], dtype=np.float32)
                rows = torch.as_tensor(part, device=self._device)
                blocks.append(self._called(rows, None).double().cpu().numpy())
        return np.concatenate(blocks)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict labels."""
        outputs = self._outputs(X)
        if self.classes:
            return np.asarray(self.classes_[outputs[:, : len(self.classes_)].argmax(1)])
        labels = outputs[:, : len(self._mean)] * self._scale + self._mean
        return labels[:, 0] if self._single else labels

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Probabilities of the classes."""
        outputs = self._outputs(X)[:, : len(self.classes_)]
        shifted = np.exp(outputs - outputs.max(1, keepdims=True))
        return np.asarray(shifted / shifted.sum(1, keepdims=True))
