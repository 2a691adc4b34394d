"""Training of a user's torch module: one recipe, printed with the results (extra torch)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidData, NotConverged
from solvable.fitting.devices import chosen_device, import_torch, torch_device
from solvable.paths import error_line
from solvable.probes.multilayer import Network

STEPS, STEP_SIZE, BATCH_ROWS, VALIDATION = 4_000, 1e-3, 128, 0.15

RECIPE = (
    f"Adam with step {STEP_SIZE:g} (falling to 0 as a cosine), batches of {BATCH_ROWS}, {STEPS:,} steps, "
    f"{VALIDATION:.0%} of the rows for validation, the best step kept"
)
"""How torch modules are trained, in words; a module may have a method ``fit`` of its own instead."""


class TorchLearner(Network):
    """A torch module, from rows to outputs of shape (n, outputs) or (n,), trained by the recipe."""

    def __init__(self, module: Any, *, classes: bool, seed: int) -> None:
        self.module, self.classes, self.seed = copy.deepcopy(module), classes, seed

    def fit(
        self, X: np.ndarray, y: np.ndarray, observe: Callable[[int], None] | None = None
    ) -> TorchLearner:
        """Train by the recipe on the device of the study; `observe` is called after each step."""
        torch = import_torch()
        torch.manual_seed(self.seed)
        for layer in self.module.modules():
            if hasattr(layer, "reset_parameters"):
                layer.reset_parameters()  # each replicate has its own start
        self._device = torch_device(torch, chosen_device() or "cpu")
        self.module.to(self._device)
        inputs, labels = self._prepared(X, y)
        rows = torch.as_tensor(inputs, device=self._device)
        wanted = torch.as_tensor(labels, device=self._device)
        self._columns = labels.shape[1]
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
            if observe is not None:
                observe(step)
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

    def _called(self, rows: Any) -> Any:
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
        if len(shape) != 2 or shape[0] != len(rows) or shape[1] < self._columns:
            raise InvalidData(
                f"{type(self.module).__name__} returns shape {shape} for {len(rows)} rows; allowed: "
                f"({len(rows)}, {self._columns})."
            )
        return outputs[:, : self._columns]

    def _loss(self, torch: Any, rows: Any, wanted: Any) -> Any:
        outputs = self._called(rows)
        if self.classes:
            return torch.nn.functional.cross_entropy(outputs, wanted)
        return ((outputs - wanted) ** 2).mean()

    def _outputs(self, X: np.ndarray) -> np.ndarray:
        torch = import_torch()
        self.module.eval()
        blocks = []
        with torch.no_grad():
            for start in range(0, len(X), 4096):
                part = np.asarray(X[start : start + 4096], dtype=np.float32)
                rows = torch.as_tensor(part, device=self._device)
                blocks.append(self._called(rows).double().cpu().numpy())
        return np.concatenate(blocks)
