"""Theory of a thousand features: little memory, and no slow import of SciPy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PREDICT = """
import resource, sys
from pathlib import Path
from solvable.cli.app import main

sys.argv = ["solvable", "theory", "sequential-recovery", "--set", "dimension=170", "features=950"]
assert not main()
# VmHWM is the peak of this program alone; ru_maxrss includes the parent process.
peak = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
used = resource.getrusage(resource.RUSAGE_SELF)
print(peak, used.ru_utime, *(name for name in sys.modules if name.startswith("scipy")))
"""


def test_a_thousand_features_take_300_megabytes_and_no_scipy() -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of a process is read from /proc")
    done = subprocess.run(
        [sys.executable, "-c", PREDICT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    memory, seconds, *modules = done.stdout.splitlines()[-1].split()
    assert int(memory) * 1024 < 300e6
    assert float(seconds) < 8  # 1.5 s on an idle machine
    assert not modules
