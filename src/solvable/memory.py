"""How much memory a route may take, and how the numbers are said."""

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
    """Memory that can still be taken, of the machine and of the container; infinite if unknown."""
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
            # Usage counts reclaimable file pages, so that this errs on the careful side.
            return max(0.0, float(allowed) - float(used))
    return float("inf")


def gigabytes(size: float) -> str:
    """Size in the unit a reader can judge."""
    return f"{size / 1e9:.3g} GB" if size >= 1e8 else f"{size / 1e6:.3g} MB"
