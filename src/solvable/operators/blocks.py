"""Number of sample rows in one product, which depends on the device of the samples."""

from __future__ import annotations

from typing import Any


def array_behind(samples: Any) -> Any:
    """Return the array behind an array, a source or a view of a source; None for other sources."""
    while samples is not None and not hasattr(samples, "ndim"):
        samples = getattr(samples, "array", getattr(samples, "source", None))
    return samples


def on_accelerator(samples: Any) -> bool:
    """Return True if samples (an array or a source) are on a device other than the host."""
    device = getattr(array_behind(samples), "device", "cpu")
    return str(getattr(device, "type", device)) != "cpu"


def rows_per_block(samples: Any, on_host: int, bytes_per_row: float) -> int:
    """Number of rows per block: ``on_host`` on the host; on an accelerator limited by its memory.

    ``bytes_per_row`` counts a row of the block and all arrays that exist for this row at one time.
    """
    if not on_accelerator(samples):
        return on_host
    # On an accelerator a launch costs more than a cache miss. The limit is a share of the total
    # memory, so that every run on a device uses the same blocks.
    return max(1, int(_device_bytes(array_behind(samples).device) / 32 / bytes_per_row))


def _device_bytes(device: Any) -> float:
    """Total memory of an accelerator; 8 GB if its library does not report it."""
    if getattr(device, "type", None) == "cuda":
        import torch

        return float(torch.cuda.get_device_properties(device).total_memory)
    return 8e9
