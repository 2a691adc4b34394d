"""The command line and the Python lines that give what a page shows."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from solvable.frame.system import System
from solvable.study.parameters import format_settings, validate_parameters


def changed_settings(system: System, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that differ from the defaults, as plain values."""
    setting = validate_parameters(system, settings)
    return setting.model_dump(mode="json", exclude_defaults=True)


def command_of(system: System, settings: Mapping[str, Any]) -> str:
    """Return the command line that predicts a setting."""
    words = ["solvable", "theory", system.name]
    changed = changed_settings(system, settings)
    if changed:
        words += ["--set", *(format_settings({n: [v]}) for n, v in changed.items())]
    return shlex.join(words)


def python_of(system: System, settings: Mapping[str, Any]) -> str:
    """Return Python lines that predict a setting."""
    changed = changed_settings(system, settings)
    lines = [f"    {name}={value!r}," for name, value in changed.items()]
    if not lines:
        return f"import solvable\n\nfound = solvable.theory_of({system.name!r})\nprint(found)\n"
    call = "\n".join([f"found = solvable.theory_of(\n    {system.name!r},", *lines, ")"])
    return f"import solvable\n\n{call}\nprint(found)\n"
