"""Available memory, and sizes in readable units."""

from __future__ import annotations

import os
from pathlib import Path

_LIMITS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)


def available_bytes() -> float:
    """Return the free memory of the machine or container in bytes; infinite if unknown."""
    return min(_of_the_machine(), _of_the_container())


def _of_the_machine() -> float:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    except OSError:
        pass
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def _of_the_container() -> float:
    for limit, usage in _LIMITS:
        try:
            allowed, used = Path(limit).read_text().strip(), Path(usage).read_text().strip()
        except OSError:
            continue
        if allowed.isdigit() and used.isdigit():
            # usage includes reclaimable file pages, so free memory is underestimated
            return max(0.0, float(allowed) - float(used))
    return float("inf")


def gigabytes(size: float) -> str:
    """Format a size with a suitable unit."""
    return f"{size / 1e9:.3g} GB" if size >= 1e8 else f"{size / 1e6:.3g} MB"
