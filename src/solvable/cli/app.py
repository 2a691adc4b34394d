"""The command line: its commands, and one line per error."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cyclopts import App, CycloptsError, Parameter

from solvable.cli import on_signals
from solvable.cli.activations import activations
from solvable.cli.cite import cite
from solvable.cli.compare import compare
from solvable.cli.diagnose import diagnose
from solvable.cli.explore import explore
from solvable.cli.forecast import forecast
from solvable.cli.help_text import flowing, with_flowing_help
from solvable.cli.learn import learn
from solvable.cli.list import list_systems
from solvable.cli.predict import predict
from solvable.cli.probe import probe
from solvable.cli.report import report
from solvable.cli.retrieve import COMMANDS as RETRIEVE_COMMANDS
from solvable.cli.retrieve import retrieve_group
from solvable.cli.run import run
from solvable.cli.scale import scale
from solvable.cli.settings import read_option
from solvable.cli.theory import theory
from solvable.cli.verify import verify
from solvable.errors import SolvableError, quoted, shortened, unknown_choice
from solvable.paths import printable

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

HELP = """\
Solvable models of feature learning: theory and experiment on the same axes.

For example:
  solvable list                           systems that are installed
  solvable run sequential-recovery        under a minute: verdicts and a report
  solvable run sequential-recovery --set dimension=60,120 --seeds 5
  solvable run SYSTEM --help              parameters and presets of a system
  solvable theory sequential-recovery     the prediction alone
  solvable verify RUN                     judge claims again on stored records
  solvable compare RUN RUN                verdicts and metrics, side by side
  solvable explore sequential-recovery    a page with sliders for parameters
  solvable probe mlp                      which features does a learner find, and when?
  solvable learn data.csv --target risk   features and errors of your own table
  solvable predict MODEL new.csv          new rows, predicted by a stored model
  solvable forecast curve.csv             a learning curve, extrapolated
  solvable diagnose model.safetensors     what did my weight matrices learn?
  solvable retrieve search INDEX "query"  search your own documents
  solvable scale --layers erf:1 --target he3  samples as a power of d
  solvable activations relu gelu he4      how noise-sensitive are activations?

Exit status: 0 success; 1 a claim or a task failed; 2 bad input, with one line on
what to correct; 130 Ctrl-C or SIGTERM, finished work is kept and the same command
resumes.
"""

LONGEST_LINE = 900
"""Largest number of characters of an error line; the middle of a longer one is cut."""

_COMMANDS: dict[str, Callable[..., int] | App] = {
    "list": list_systems,
    "run": run,
    "theory": theory,
    "report": report,
    "verify": verify,
    "compare": compare,
    "explore": explore,
    "probe": probe,
    "learn": learn,
    "predict": predict,
    "forecast": forecast,
    "diagnose": diagnose,
    "retrieve": retrieve_group(),
    "scale": scale,
    "activations": activations,
    "cite": cite,
}

_SYNONYMS = {
    "list": "systems models ls show info describe presets parameters claims search",
    "run": "simulate measure experiment start study reproduce",
    "theory": "predictions predicted",
    "report": "plot figure figures draw view open",
    "verify": "test check validate judge",
    "learn": "train fit features",
    "predict": "apply infer",
    "forecast": "extrapolate curve",
    "diagnose": "analyse analyze inspect weights spectrum",
    "scale": "scaling",
    "cite": "bibtex references reference",
}
"""Words that a new user may try for each command."""


def build_app() -> App:
    """Build the commands; bad input raises, and :func:`main` prints one line."""
    app = App(
        name="solvable",
        help=flowing(HELP),
        help_format="plaintext",
        version=_version,
        default_parameter=Parameter(negative=(), converter=read_option),
        suppress_keyboard_interrupt=False,
    )
    for position, (name, command) in enumerate(_COMMANDS.items()):
        # in the order in which a new user needs them
        if isinstance(command, App):
            command.sort_key = position
            app.command(command)
        else:
            app.command(with_flowing_help(command), name=name, sort_key=position)
    return app


def _version() -> str:
    from solvable import __version__

    return f"solvable {__version__}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, as :func:`solvable.cli.main` describes."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # a terminal without a character such as "±" shows a question mark
            stream.reconfigure(errors="replace")
    try:
        if arguments is None:
            # job schedulers and `timeout` end a run with SIGTERM, which must keep finished work too
            on_signals(signal.default_int_handler)
            sys.unraisablehook = _interrupt_again
        status = _call(words)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes again at its end, which must not fail again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # the exit status after SIGPIPE
    except KeyboardInterrupt:
        print("solvable: interrupted.", file=sys.stderr)
        return 130  # the exit status after SIGINT
    except Exception as error:
        return _refuse(_message(error, words))
    return status


def _interrupt_again(ignored: UnraisableHookArgs) -> None:
    """Repeat an interrupt that Python ignored, as it ignores exceptions of callbacks and `__del__`."""
    if ignored.exc_type is KeyboardInterrupt:
        threading.Timer(0.01, signal.raise_signal, [signal.SIGINT]).start()
    else:
        sys.__unraisablehook__(ignored)


def _message(error: Exception, words: list[str]) -> str:
    """Return the line for an exception that ends a command."""
    cause = error.__cause__ if isinstance(error, CycloptsError) else error
    if isinstance(cause, SolvableError):
        return str(cause)
    if isinstance(cause, MemoryError):
        from solvable.memory import available_bytes, gigabytes

        seen = shortened(printable(str(cause))).rstrip(".") or "no more could be allocated"
        return (
            f"not enough memory: {seen}; {gigabytes(available_bytes())} are free under the limits of "
            "this process. Use smaller sizes, fewer --workers, or a job with more memory."
        )
    if isinstance(error, CycloptsError):
        return _explain(error, words)
    if isinstance(error, OSError) and error.errno is not None:
        # an error of the file system without a more specific message
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror}. Check the path and its permissions."
    shown = os.environ.get("SOLVABLE_DEBUG") == "1"
    if shown:
        traceback.print_exception(error)
    first = next(iter(str(error).splitlines()), "")
    what = ": ".join(filter(None, [type(error).__name__, shortened(printable(first))]))
    hint = "" if shown else " SOLVABLE_DEBUG=1 shows where it was raised."
    return f"an error of the program, {what}; please report it with this command.{hint}"


def _call(words: list[str]) -> int:
    if words[:1] == ["help"]:
        words = words[1:]
        if not words or words[0] in _COMMANDS:  # other words are refused as an unknown command
            words.append("--help")
    app = build_app()
    named = _system_of_help(words)
    if named is not None:
        from solvable.cli.describe import write_description
        from solvable.frame.registry import load

        system = load(named)
        app([words[0], "--help"], result_action="return_value")
        write_description(system, command=words[0])
        return 0
    status = app(words, exit_on_error=False, print_error=False, result_action="return_value")
    return status if isinstance(status, int) else 0


def _system_of_help(words: list[str]) -> str | None:
    """Return the system in ``run SYSTEM --help``, in any order of the words."""
    if not words or words[0] not in ("run", "theory"):
        return None
    if not {"--help", "-h"} & set(words):
        return None
    from solvable.frame.registry import available

    installed = {listing.name for listing in available()}
    found = [word for word in words[1:] if word in installed]
    if not found and not words[1].startswith("-"):
        return words[1]
    return found[0] if found else None


def _refuse(message: str) -> int:
    # cut the middle of long file names, formulas and values
    plain = re.sub(r"\S{200,}", lambda word: shortened(word[0]), printable(message))
    print(f"solvable: {shortened(' '.join(plain.split()), LONGEST_LINE)}", file=sys.stderr)
    return 2


def _explain(error: CycloptsError, words: list[str]) -> str:
    """Return the line for an error of cyclopts, with the remedy."""
    from cyclopts import (
        CoercionError,
        MissingArgumentError,
        UnknownCommandError,
        UnknownOptionError,
        UnusedCliTokensError,
    )

    command = words[0] if words and words[0] in _COMMANDS else None
    if isinstance(error, UnknownCommandError) and command is None:
        return _unknown_command((error.unused_tokens or words)[0])
    if command == "retrieve" and words[1:2] and words[1] in RETRIEVE_COMMANDS:
        command = f"retrieve {words[1]}"
    message = str(error)
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        name = error.argument.name
        if name == "SYSTEM":
            return _name_a_system(words)
        message = f"{name} needs a value." if name.startswith("-") else f"{command} needs {name}."
    elif isinstance(error, UnusedCliTokensError):
        unused = " ".join(error.unused_tokens or [])
        message = f"{command} cannot use {quoted(unused)}."
        if command in ("run", "theory"):
            option = "--set" if "=" in unused or command == "theory" else "--preset"
            message += f" Did you mean {option} {shortened(unused)}?"
    elif isinstance(error, UnknownOptionError) and command in ("run", "theory"):
        option = error.token.keyword or error.token.value
        if setting := _as_setting(option, words):
            message = f"Unknown option: {option}. Did you mean --set {setting}?"
    elif (
        isinstance(error, CoercionError) and error.token is not None and error.target_type is float
    ):
        message = f"{error.token.keyword} is {quoted(error.token.value)}; allowed: numbers."
    for word in words:
        message = message.replace(word, shortened(word)) if word else message
    return f"{message} See `{' '.join(filter(None, ['solvable', command]))} --help`."


def _as_setting(option: str, words: list[str]) -> str:
    """Return ``dimension=50`` for ``--dimension 50``, if it is a parameter of the system; else ""."""
    from solvable.frame.registry import available, load

    installed = {listing.name for listing in available()}
    system = next((word for word in words[1:] if word in installed), None)
    name = option.lstrip("-").replace("-", "_")
    if system is None or name not in load(system).parameters.model_fields:
        return ""
    joined = [word.partition("=")[2] for word in words if word.startswith(f"{option}=")]
    after = words[words.index(option) + 1 :] if option in words else joined
    return f"{name}={next(iter(after), 'VALUE')}"


def _unknown_command(word: str) -> str:
    from solvable.frame.registry import available

    nearest = [name for name, synonyms in _SYNONYMS.items() if word.lower() in synonyms.split()]
    if word in {listing.name for listing in available()}:
        nearest = [f"run {word}"]
    message = unknown_choice("the command", word, _COMMANDS)
    if nearest:
        message = f"{message.partition(' Did you mean')[0]} Did you mean `solvable {nearest[0]}`?"
    return f"{message} See `solvable --help`."


def _name_a_system(words: list[str]) -> str:
    from solvable.frame.registry import available

    names = ", ".join(listing.name for listing in available())
    hint = " Write it before --set." if any(word.startswith("--set") for word in words) else ""
    return f"{words[0]} needs the name of a system; installed: {names}.{hint}"
