"""Available memory, and sizes in readable units."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_PROCESS = Path("/proc/self")

# Files of a control group, version 2 and version 1: limit, usage, and the name in memory.stat of file
# pages that are given back when memory is needed.
_FILES = {
    2: ("memory.max", "memory.current", "inactive_file"),
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def available_bytes() -> float:
    """Return the free memory of the machine, of its control groups or under RLIMIT_AS; the least."""
    return min(_of_the_machine(), _of_control_groups(), _of_the_address_space())


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


def _of_control_groups() -> float:
    """Return the free memory of the process's control group and of all groups that contain it."""
    limited = _limited_groups(_CGROUPS, _PROCESS)
    return min((_of_group(folder, version) for version, folder in limited), default=float("inf"))


@cache
def _limited_groups(root: Path, process: Path) -> tuple[tuple[int, Path], ...]:
    """Return the groups with a file of their limit; looking for them takes a millisecond."""
    found: dict[tuple[int, Path], None] = {}
    for version, folder in _groups(root, process):
        while True:
            if (folder / _FILES[version][0]).exists():
                found[version, folder] = None
            if folder in (root, root / "memory", root / "unified", folder.parent):
                break
            folder = folder.parent
    return tuple(found)


def _groups(root: Path, process: Path) -> Iterator[tuple[int, Path]]:
    """Yield the folders of the process's groups; those of a container are at the root."""
    try:
        lines = (process / "cgroup").read_text().splitlines()
    except OSError:
        lines = []
    lines += ["0::/", "1:memory:/"]
    for line in lines:
        number, controllers, path = line.split(":", 2)
        inside = path.strip("/")
        if number == "0":
            yield 2, root / inside
            yield 2, root / "unified" / inside
        elif "memory" in controllers.split(","):
            yield 1, root / "memory" / inside


def _of_group(folder: Path, version: int) -> float:
    limit, usage, reclaimable = _FILES[version]
    try:
        allowed, used = ((folder / name).read_text().strip() for name in (limit, usage))
    except OSError:
        return float("inf")
    if not (allowed.isdigit() and used.isdigit()):
        return float("inf")  # "max"
    return max(0.0, float(allowed) - float(used) + _reclaimable(folder, reclaimable))


def _reclaimable(folder: Path, name: str) -> float:
    try:
        rows = (line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return next((float(row[1]) for row in rows if row[0] == name), 0.0)
    except (OSError, ValueError, IndexError):
        return 0.0


def _of_the_address_space() -> float:
    """Return what RLIMIT_AS leaves: a limit of the addresses in use, set by `ulimit -v` or a queue."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return float("inf")
        pages = int((_PROCESS / "statm").read_text().split()[0])
        return max(0.0, float(limit) - pages * float(os.sysconf("SC_PAGE_SIZE")))
    except (ImportError, OSError, ValueError, IndexError):
        return float("inf")


def gigabytes(size: float) -> str:
    """Format a size with a suitable unit."""
    return f"{size / 1e9:.3g} GB" if size >= 1e8 else f"{size / 1e6:.3g} MB"
