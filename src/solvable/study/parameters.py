"""Checked parameters of a system, and their canonical JSON text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from solvable.errors import InvalidParameter, unknown_choice
from solvable.frame.parameter_errors import refusal_of
from solvable.frame.parameters import Parameters
from solvable.frame.system import System


def canonical_json(value: Any) -> str:
    """Return JSON text that is equal for equal parameters: sorted keys, no spaces, no negative zero."""
    return json.dumps(
        without_negative_zero(value), sort_keys=True, separators=(",", ":"), allow_nan=False
    )


def without_negative_zero(value: Any) -> Any:
    """Return a copy of a JSON value with every -0.0 replaced by 0.0, which is an equal setting."""
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, Mapping):
        return {key: without_negative_zero(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_negative_zero(item) for item in value]
    return value


def validate_parameters(system: System, values: Mapping[str, Any]) -> Parameters:
    """Check the parameters of a system; text such as ``"60"`` is read as the field's type."""
    fields = system.parameters.model_fields
    for name in values:
        if name not in fields:
            raise InvalidParameter(
                unknown_choice(f"the name of a parameter of {system.name}", name, fields)
            )
    try:
        return system.parameters(**values)
    except ValidationError as error:  # a class with another base than Parameters
        kind = f"the name of a parameter of {system.name}"
        raise refusal_of(error, fields, kind) from None


def format_settings(settings: Mapping[str, Sequence[Any]]) -> str:
    """Write values as arguments of ``--set``: ``dimension=60 decay=0.5,1.0``."""
    return " ".join(
        f"{name}={','.join(_text(value) for value in values)}" for name, values in settings.items()
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
