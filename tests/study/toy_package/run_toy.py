"""Run a study of the toy system. Arguments: DIRECTORY WORKERS PAUSE."""

from __future__ import annotations

import sys

from toy_system import Toy

from solvable.study import Study, StudyResult, run_study


def study(pause: float) -> Study:
    """Return a study of 24 tasks at 8 points."""
    return Study(Toy(), {"size": [1, 5, 30, 200], "scale": [0.5, 2.0], "pause": pause}, 3)


def main(directory: str, workers: str, pause: str) -> StudyResult:
    """Run the study."""
    return run_study(study(float(pause)), directory, workers=int(workers))


if __name__ == "__main__":
    main(*sys.argv[1:])
