"""How many rows of samples are multiplied at a time, by where the samples live."""

from __future__ import annotations

from typing import Any


def array_behind(samples: Any) -> Any:
    """The array that an array, a source or a view of one reads; None for other sources."""
    while samples is not None and not hasattr(samples, "ndim"):
        samples = getattr(samples, "array", getattr(samples, "source", None))
    return samples


def on_accelerator(samples: Any) -> bool:
    """Whether samples (an array or a source) live on a device other than the host."""
    device = getattr(array_behind(samples), "device", "cpu")
    return str(getattr(device, "type", device)) != "cpu"


def rows_per_block(samples: Any, on_host: int, bytes_per_row: float) -> int:
    """``on_host`` rows, which fit its cache; on an accelerator what fits a share of its memory.

    ``bytes_per_row`` counts a row of the block and all that is made of it at one time.
    """
    if not on_accelerator(samples):
        return on_host
    # A launch costs more than any cache miss there. The share is one of the whole memory, so that
    # every run on a device takes the same blocks.
    return max(1, int(_device_bytes(array_behind(samples).device) / 32 / bytes_per_row))


def _device_bytes(device: Any) -> float:
    """Whole memory of an accelerator; 8 GB where its library does not say."""
    if getattr(device, "type", None) == "cuda":
        import torch

        return float(torch.cuda.get_device_properties(device).total_memory)
    return 8e9
