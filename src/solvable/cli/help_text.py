"""Help of a command from its docstring, with lines that break at the width of the terminal."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any


def with_flowing_help(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a copy of a command whose docstring has one line per paragraph and per description."""
    assert isinstance(command, FunctionType)
    copy = FunctionType(command.__code__, command.__globals__, command.__name__)
    copy.__defaults__, copy.__kwdefaults__ = command.__defaults__, command.__kwdefaults__
    copy.__annotations__ = command.__annotations__
    copy.__module__, copy.__qualname__ = command.__module__, command.__qualname__
    # `python -OO` removes docstrings; commands then work without their help.
    text, heading, parameters = (inspect.getdoc(command) or "").partition("\nParameters\n")
    copy.__doc__ = flowing(text) + heading + flowing(parameters, indent=4)
    return copy


def flowing(text: str, indent: int = 0) -> str:
    """Join neighbouring lines with this indentation; other lines, such as examples, stay as they are."""
    lines: list[str] = []
    joinable = False
    for line in text.splitlines():
        flows = bool(line) and len(line) - len(line.lstrip()) == indent
        if flows and joinable:
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
        joinable = flows
    return "\n".join(lines)
