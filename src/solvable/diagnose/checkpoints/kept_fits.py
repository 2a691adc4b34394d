"""Fits of finished checkpoints, kept so that an interrupted series can be resumed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from solvable.diagnose.checkpoints.fits import Fit
from solvable.errors import StorageFailed
from solvable.plots.files import write_atomically


class KeptFits:
    """Folder with the fits of one series, one request and one version of the program."""

    def __init__(self, directory: Path, fingerprint: str) -> None:
        place = directory.absolute()
        self.folder = place.parent / f".{place.name}.part"
        self.identity = f"{fingerprint} {version('solvable')}"

    def find(self, place: int) -> list[Fit] | None:
        """Return the fits of a checkpoint; None if they are missing, damaged or of another series."""
        try:
            content = json.loads(self._path(place).read_bytes())
            if content["identity"] != self.identity:
                return None
            return [
                Fit(**{**row, "shape": tuple(row["shape"]), "overlaps": tuple(row["overlaps"])})
                for row in content["fits"]
            ]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def keep(self, place: int, fits: Sequence[Fit]) -> None:
        """Store the fits of a checkpoint; the run continues if storing fails."""
        content = {"identity": self.identity, "fits": [asdict(fit) for fit in fits]}
        with suppress(StorageFailed):
            write_atomically(self._path(place), json.dumps(content).encode())

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, place: int) -> Path:
        return self.folder / f"{place}.json"
