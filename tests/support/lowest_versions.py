"""Print the lowest version that pyproject.toml states for each core dependency, as pip constraints.

python tests/support/lowest_versions.py > lowest.txt && pip install -c lowest.txt .
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path


def lowest_versions(requirements: list[str]) -> list[str]:
    """Return `name==version` for each requirement `name>=version`; refuse one without a bound."""
    found = []
    for requirement in requirements:
        bound = re.fullmatch(r"([\w.-]+)(?:\[.*\])?>=([\w.]+)(?:,<[\w.]+)?", requirement)
        if bound is None:
            raise SystemExit(
                f"pyproject.toml: the dependency {requirement!r} states no lowest version; allowed: "
                "name>=version, or name>=version,<version."
            )
        found.append(f"{bound[1]}=={bound[2]}")
    return found


if __name__ == "__main__":
    project = Path(__file__).parents[2] / "pyproject.toml"
    stated = tomllib.loads(project.read_text("utf-8"))["project"]["dependencies"]
    sys.stdout.write("".join(f"{line}\n" for line in lowest_versions(stated)))
