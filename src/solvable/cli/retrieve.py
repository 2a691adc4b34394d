"""``solvable retrieve``: the group of commands for late-interaction retrieval."""

from __future__ import annotations

from collections.abc import Callable

from cyclopts import App, Parameter

from solvable.cli.help_text import with_flowing_help
from solvable.cli.retrieve_index import index
from solvable.cli.retrieve_search import search
from solvable.cli.retrieve_train import train
from solvable.cli.settings import read_option

HELP = """\
Train small late-interaction models, index documents, and search them.

For example:
  solvable retrieve train docstrings --student static --output run
  solvable retrieve index docs.jsonl --model run/models/c.safetensors
  solvable retrieve search INDEX "inverse of a matrix"

The commands need the extra `retrieval`: pip install 'solvable[retrieval]'.
"""

COMMANDS: dict[str, Callable[..., int]] = {"train": train, "index": index, "search": search}


def retrieve_group() -> App:
    """Build the group of commands."""
    group = App(
        name="retrieve",
        help=HELP,
        help_format="plaintext",
        version_flags=(),
        default_parameter=Parameter(negative=(), converter=read_option),
    )
    for position, (name, command) in enumerate(COMMANDS.items()):
        group.command(with_flowing_help(command), name=name, sort_key=position)
    return group
