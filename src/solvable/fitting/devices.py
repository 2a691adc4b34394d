"""Device of the learners of a study: samples as torch tensors on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from solvable.arrays import Array
from solvable.errors import InvalidParameter

_DEVICE: ContextVar[str | None] = ContextVar("device", default=None)


@contextmanager
def computing_on(device: str | None) -> Iterator[None]:
    """Let :func:`on_device` send samples to a device; None keeps them in NumPy."""
    token = _DEVICE.set(device)
    try:
        yield
    finally:
        _DEVICE.reset(token)


def chosen_device() -> str | None:
    """Return the device of the study in torch's notation; None for NumPy."""
    return _DEVICE.get()


def on_device(samples: Any) -> Array:
    """Return an array of NumPy as a tensor on the chosen device; all else stays as it is."""
    device = _DEVICE.get()
    if device is None or not isinstance(samples, np.ndarray):
        return samples
    torch = import_torch("a device")
    return torch.as_tensor(samples, device=torch_device(torch, device))


def import_torch(user: str = "training a network") -> Any:
    """Import torch, or say how to install it."""
    try:
        import torch
    except ImportError as error:
        raise InvalidParameter(
            f"{user} needs torch, which cannot be imported ({error}). Install it: "
            'pip install "solvable[torch]"'
        ) from error
    return torch


def torch_device(torch: Any, name: str) -> Any:
    """Return a device of torch, or say that torch cannot use it here."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        first = str(error).splitlines()[0]
        raise InvalidParameter(
            f"device is {name!r}, which torch cannot use here ({first}); allowed: 'cpu', or 'cuda' "
            "where there is one."
        ) from error
    return device
