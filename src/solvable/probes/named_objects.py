"""Objects that a user names as ``module:name``, in the working directory or installed."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

from solvable.errors import InvalidParameter
from solvable.paths import error_line

_GIVEN: dict[str, Any] = {}


def remember(value: Any) -> str:
    """Return a name under which this process finds an object that was given in Python."""
    label = getattr(value, "__name__", "") or type(value).__name__
    if "lambda" in label:
        label = "function"
    if hasattr(value, "get_params"):
        label = " ".join(repr(value).split())[:100]
    name, count = f"given:{label}", 1
    while name in _GIVEN and _GIVEN[name] is not value:
        count += 1
        name = f"given:{label} {count}"
    _GIVEN[name] = value
    return name


def imported(name: str, kind: str) -> Any:
    """Import ``module:name``, ``folder/module.py:name`` or a name of :func:`remember`.

    The working directory is searched first; `kind` names the object in messages.
    """
    if name.startswith("given:"):
        if name not in _GIVEN:
            raise InvalidParameter(
                f"{kind} {name.removeprefix('given:')!r} was given as an object in another process; "
                "allowed here: module:name, so that it can be imported."
            )
        return _GIVEN[name]
    module, _, attribute = name.rpartition(":")
    path = os.path.abspath(module) if module.endswith(".py") else ""
    folder = os.path.dirname(path) if path else os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Any = _of_file(path) if path else import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise InvalidParameter(
            f"{kind} {name!r} cannot be imported ({error_line(error)}); allowed: module:name or "
            "module.py:name, where the module is a file or an installed package."
        ) from error
    return found


def _of_file(path: str) -> Any:
    """Import a file by its path, under a name that no installed module has."""
    name = f"solvable_file_{os.path.basename(path)[:-3]}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module  # classes of the file can be pickled
    spec.loader.exec_module(module)
    return module
