"""Run the command line as ``python -m solvable``."""

from __future__ import annotations

import sys

from solvable.cli import main

if __name__ == "__main__":
    sys.exit(main())
