"""One BLAS thread for all tests, as in the library's workers; Ctrl-C as in a terminal."""

from __future__ import annotations

import os
import signal

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell starts background jobs with Ctrl-C ignored, and child processes inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Hold for libraries that were loaded before the variables were set, too."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield
