"""``solvable retrieve``: the group of commands for late-interaction retrieval."""

from __future__ import annotations

from collections.abc import Callable

from cyclopts import App, Parameter

from solvable.cli.help_text import with_flowing_help
from solvable.cli.retrieve_index import index, search, update
from solvable.cli.retrieve_train import train
from solvable.cli.settings import read_option

HELP = """\
Index documents, search them by meaning and by words, and train small models for it.

For example:
  solvable retrieve index notes --output index
  solvable retrieve search index "inverse of a matrix"
  solvable retrieve train docstrings --student static --output run

The commands need the extra `retrieval`: pip install 'solvable[retrieval]'.
"""

COMMANDS: dict[str, Callable[..., int]] = {
    "index": index, "search": search, "update": update, "train": train,
}  # fmt: skip


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
