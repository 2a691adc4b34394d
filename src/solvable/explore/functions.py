"""A page of a system that is served from this process."""

from __future__ import annotations

import importlib.util
import os
import stat
import tempfile
import webbrowser
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from solvable.errors import InvalidParameter
from solvable.explore.app import build
from solvable.explore.explorer import Explorer
from solvable.explore.runs import Runs, run_of
from solvable.explore.server import HOST, Guard, PageServer, listen, new_token
from solvable.explore.values import presets_of
from solvable.frame import registry
from solvable.frame.system import System
from solvable.study.parameters import validate_parameters
from solvable.study.results import StudyResult


class Exploration:
    """A served page; a notebook shows its address as a link.

    Parameters
    ----------
    address : str
        Address with the token; whoever has it can use the page.
    server : PageServer
        Server in threads of this process.
    explorer : Explorer
        What the page computes with.
    """

    def __init__(self, address: str, server: PageServer, explorer: Explorer) -> None:
        self.address = address
        self.explorer = explorer
        self._server = server
        self._closed = False

    def close(self) -> None:
        """Stop an active run, whose finished tasks are kept, and the server."""
        if not self._closed:
            self._closed = True
            self.explorer.close()
            self._server.close()

    def __enter__(self) -> Exploration:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else self.address
        return f"<Exploration of {self.explorer.system.name}: {state}>"

    def _repr_html_(self) -> str:
        words = escape(f"page of {self.explorer.system.name}")
        return f'<a href="{escape(self.address)}" target="_blank" rel="noreferrer">{words}</a>'


def explore_system(
    system: str | System,
    run: str | Path | StudyResult | None = None,
    /,
    *,
    port: int | None = None,
    output: str | Path = "solvable-runs",
    **settings: Any,
) -> Exploration:
    """Serve a page on which theory lines follow the parameters: ``solvable explore``.

    Parameters
    ----------
    system : str or System
        Name of an installed system, or a System object.
    run : path or StudyResult, optional
        Run of the system, whose points are on the figures.
    port : int, optional
        Port on 127.0.0.1, 1 to 65535; default a free one.
    output : path
        Directory in which runs that the page starts have their directories.
    **settings
        Parameters at the start; those left out are those of the run or of the preset ``quick``.

    Returns
    -------
    Exploration
        With ``address`` and ``close()``; the page is served until then by threads of this process.

    Raises
    ------
    UnknownSystem, InvalidParameter
        If the system or a value is not one that is allowed, or the port is in use.
    StudyConflict, StudyTooNew, StorageFailed
        If the run is of another system, or cannot be read.

    Examples
    --------
    >>> import solvable
    >>> page = solvable.explore_system("quadratic-network", noise=0.5)  # doctest: +SKIP
    >>> page.address  # doctest: +SKIP
    'http://127.0.0.1:43121/oHS1.../'
    >>> page.close()  # doctest: +SKIP
    """
    check_installed()
    loaded = registry.load(system) if isinstance(system, str) else system
    given = run_of(loaded, run)
    start = start_of(loaded, given, settings)
    opened = listen(port)
    explorer = None
    try:
        token, number = new_token(), opened.getsockname()[1]
        explorer = Explorer(loaded, start, Runs(loaded, Path(output), given))
        server = PageServer(Guard(build(explorer, token).server, token, number), opened)
    except BaseException as error:
        opened.close()
        if explorer is not None:
            explorer.close()
        if isinstance(error, ImportError):
            raise _not_installed(str(error)) from None
        raise
    server.start()
    return Exploration(f"http://{HOST}:{number}/{token}/", server, explorer)


def start_of(
    system: System, run: StudyResult | None, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the setting at which a page opens: that of the run or of the preset quick."""
    if run is not None and run.points:
        first = dict(run.points[0].parameters)
    else:
        first = presets_of(system).get("quick", {})
    try:
        return validate_parameters(system, {**first, **settings}).model_dump(mode="json")
    except InvalidParameter:  # some settings exclude each other: those that are given count
        return validate_parameters(system, settings).model_dump(mode="json")


def check_installed() -> None:
    """Refuse without Dash, with the extra that installs it."""
    if importlib.util.find_spec("dash") is None:
        raise _not_installed("there is no package dash")


def _not_installed(reason: str) -> InvalidParameter:
    return InvalidParameter(
        f"explore needs Dash, which cannot be imported ({reason}). Install it: "
        "pip install 'solvable[explore]'."
    )


def open_browser(address: str) -> Path | None:
    """Open the address in a graphical browser through a private file; return the file.

    The command line of a browser is visible to other users of the machine, so it must not hold the
    token.
    """
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return None
    if (
        type(browser) is webbrowser.GenericBrowser
    ):  # a browser in the terminal would cover the output
        return None
    handle, name = tempfile.mkstemp(prefix="solvable-explore-", suffix=".html")
    path = Path(name)
    os.fchmod(handle, stat.S_IRUSR | stat.S_IWUSR)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0; url={escape(address)}">'
            "<title>solvable explore</title>"
        )
    browser.open(path.as_uri())
    return path
