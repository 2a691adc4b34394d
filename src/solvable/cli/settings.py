"""Reading ``--set name=value`` words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from solvable.errors import InvalidParameter

if TYPE_CHECKING:
    from solvable.frame.system import System

_SCIENTIFIC = re.compile(r"[+-]?\d+(\.\d*)?[eE][+]?\d{1,3}")


def parse_settings(words: Sequence[str] | None) -> dict[str, list[Any]]:
    """Read ``name=value`` words; commas between values make a grid.

    Parameters
    ----------
    words : sequence of str or None
        Such as ``["dimension=60", "samples=1000,2000"]``. A value that is itself a list is written
        as in JSON, ``widths=[10,5],[20,5]``.

    Returns
    -------
    dict
        Values by name, as text or lists; the system's parameters turn them into numbers.

    Raises
    ------
    InvalidParameter
        If a word is no ``name=value``, a value is missing, or a name occurs twice.

    Examples
    --------
    >>> parse_settings(["dimension=60", "samples=1000,2000"])
    {'dimension': ['60'], 'samples': ['1000', '2000']}
    """
    settings: dict[str, list[Any]] = {}
    if words is not None and not words:
        raise InvalidParameter("--set is empty; write --set name=value, for example dimension=60.")
    for word in words or ():
        name, equals, text = word.partition("=")
        name = name.strip()
        if not equals or not name:
            raise InvalidParameter(
                f"--set takes name=value or name=value,value; seen: {word!r}. The name of the "
                "system comes before --set."
            )
        if name in settings:
            raise InvalidParameter(
                f"--set gives {name} twice; write {name}=A,B to run a grid of both values."
            )
        settings[name] = [_value(name, part) for part in _parts(text)]
    return settings


def read_settings(system: System, words: Sequence[str] | None) -> dict[str, list[Any]]:
    """Read ``--set`` words for a system; ``samples=1e5`` is a whole number where one is wanted.

    Parameters
    ----------
    system : System
        Whose parameters.
    words : sequence of str or None
        As for :func:`parse_settings`.

    Returns
    -------
    dict
        Values by name.

    Raises
    ------
    InvalidParameter
        As for :func:`parse_settings`. Names and ranges are checked where the values are used.
    """
    settings = parse_settings(words)
    for name, field in system.parameters.model_fields.items():
        if name in settings and _is_whole(field.annotation):
            settings[name] = [_without_exponent(value) for value in settings[name]]
    return settings


def format_settings(settings: Mapping[str, Sequence[Any]]) -> str:
    """Write values as :func:`parse_settings` reads them.

    Parameters
    ----------
    settings : mapping
        Values by name in JSON form.

    Returns
    -------
    str
        Words separated by spaces.

    Examples
    --------
    >>> format_settings({"dimension": [60], "decay": [0.5, 1.0]})
    'dimension=60 decay=0.5,1.0'
    """
    return " ".join(
        f"{name}={','.join(_text(value) for value in values)}" for name, values in settings.items()
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _parts(text: str) -> list[str]:
    """Split at the commas that are outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _value(name: str, text: str) -> Any:
    if not text:
        raise InvalidParameter(f"--set {name}= lacks a value; write {name}=A or {name}=A,B.")
    if not text.startswith("["):
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidParameter(
            f"--set {name}={text} is not a list ({error.msg}); write it as in JSON, [10,5]."
        ) from None


def _is_whole(annotation: Any) -> bool:
    kinds = get_args(annotation) or (annotation,)
    return int in kinds and not {float, str} & set(kinds)


def _without_exponent(value: Any) -> Any:
    if isinstance(value, str) and _SCIENTIFIC.fullmatch(value) and float(value).is_integer():
        return str(int(float(value)))
    return value
