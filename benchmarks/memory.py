"""Measure the peak memory of a piece of work in a separate process."""

from __future__ import annotations

import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

UNIT = 1 if sys.platform == "darwin" else 1024


def peak_bytes() -> int:
    """Return the largest resident memory of this process so far."""
    # On Linux the figure of `resource` is at least the memory of the parent process.
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT


def peak_of(script: Path | str, *arguments: str) -> int:
    """Run ``script arguments`` and return the peak memory that it prints as its last word."""
    done = subprocess.run(
        [sys.executable, str(script), *arguments], check=True, capture_output=True, text=True
    )
    return int(done.stdout.split()[-1])
