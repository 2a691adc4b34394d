"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

Settings = Annotated[list[str] | None, Parameter(name="--set", consume_multiple=True, negative=())]
"""Values of parameters as ``name=value`` words."""

Flag = Annotated[bool, Parameter(negative=(), show_default=False)]
"""A switch that is off unless given."""
