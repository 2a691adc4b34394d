"""Result directories, in which results of another request are never overwritten."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from solvable.errors import InvalidParameter, StorageFailed, StudyConflict, quoted
from solvable.paths import check_path

RESULT = "result.json"  # file with the numbers, whose fingerprint identifies the directory


@dataclass(frozen=True)
class ResultDirectory:
    """Files that a command writes into a directory, and the mark by which it recognises them."""

    command: str  # first part of a directory's name
    subject: str  # kind of input in the singular: "data", "weights"
    format: str  # mark of this command in its JSON file
    files: tuple[str, ...]  # names of all written files and folders, including RESULT

    def default(self, name: str, fingerprint: str) -> Path:
        """Return the default directory, such as ``solvable-runs/learn-my-data-01234567``."""
        stem = re.sub(r"[^A-Za-z0-9]+", "-", Path(name).stem).strip("-")[:40] or self.subject
        return Path("solvable-runs") / f"{self.command}-{stem}-{fingerprint[:8]}"

    def check(self, directory: Path, fingerprint: str) -> None:
        """Refuse a directory with results of other data or another request."""
        check_path(directory, "--output")
        if directory.exists() and not directory.is_dir():
            raise InvalidParameter(
                f"--output is {quoted(str(directory))}, a file; allowed: a directory, new or of the same "
                f"{self.subject}."
            )
        taken = [name for name in self.files if (directory / name).exists()]
        if taken and self._fingerprint_in(directory) != fingerprint:
            raise StudyConflict(
                f"{directory}: holds {', '.join(taken)} of other {self.subject} or another request, "
                "which would be overwritten. Use another directory with --output, or move it away."
            )

    def reserve(self, directory: Path, fingerprint: str) -> None:
        """Check that a directory can be written, and that nothing else would be overwritten."""
        self.check(directory, fingerprint)
        # new directories are removed again: paths.whole_directory makes them with the files
        new = [path for path in (directory, *directory.parents) if not path.exists()]
        try:
            directory.mkdir(parents=True, exist_ok=True)
            probe = directory / f".{os.getpid()}.part"
            probe.touch()
            probe.unlink()
            with suppress(OSError):  # a directory with files stays
                directory.rmdir()
                for path in new[1:]:
                    path.rmdir()
        except OSError as error:
            raise StorageFailed(
                f"{directory} cannot be written ({error.strerror or error}). Choose a directory that "
                "can be written to with --output."
            ) from error

    def _fingerprint_in(self, directory: Path) -> str | None:
        try:
            content = json.loads((directory / RESULT).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        ours = isinstance(content, dict) and content.get("format") == self.format
        return str(content.get("fingerprint")) if ours else None
