"""A page of a system that is served from this process."""

from __future__ import annotations

import importlib.util
import os
import shlex
import stat
import tempfile
import webbrowser
from html import escape
from pathlib import Path
from typing import Any

from solvable.errors import InvalidParameter, StudyConflict
from solvable.explore.app import build
from solvable.explore.early import Early
from solvable.explore.explorer import Explorer
from solvable.explore.runs import Runs
from solvable.explore.server import HOST, Guard, PageServer, listen, new_token
from solvable.frame import registry
from solvable.frame.system import System
from solvable.study.parameters import validate_parameters
from solvable.study.renewed_predictions import predict_anew
from solvable.study.results import StudyResult
from solvable.study.snapshot import read


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

    def __init__(self, address: str, server: PageServer, explorer: Explorer, early: Early) -> None:
        self.address = address
        self.explorer = explorer
        self._server = server
        self._early = early
        self._closed = False

    def build(self) -> None:
        """Import Dash and build the page; requests wait for it."""
        token = self.address.rstrip("/").rpartition("/")[2]
        try:
            page = build(self.explorer, token)
        except ImportError as error:
            raise _not_installed(str(error)) from None
        self._early.open(page.server)
        self.explorer.prepare()

    def close(self) -> None:
        """Stop an active run, whose finished tasks are kept, and the server."""
        if not self._closed:
            self._closed = True
            self._early.open(None)
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
        Parameters at the start; those left out have their defaults.

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
    page = open_page(system, run, port=port, output=output, **settings)
    try:
        page.build()
    except BaseException:
        page.close()
        raise
    return page


def open_page(
    system: str | System,
    run: str | Path | StudyResult | None = None,
    /,
    *,
    port: int | None = None,
    output: str | Path = "solvable-runs",
    **settings: Any,
) -> Exploration:
    """Start the server of a page, which answers with the page once it is built."""
    check_installed()
    loaded = registry.load(system) if isinstance(system, str) else system
    start = validate_parameters(loaded, settings).model_dump(mode="json")
    given = run_of(loaded, run)
    opened = listen(port)
    try:
        token, number = new_token(), opened.getsockname()[1]
        explorer = Explorer(loaded, start, Runs(loaded, Path(output), given))
        early = Early(token, f"{loaded.name}: {loaded.title}")
        server = PageServer(Guard(early, token, number), opened)
    except BaseException:
        opened.close()
        raise
    server.start()
    return Exploration(f"http://{HOST}:{number}/{token}/", server, explorer, early)


def check_installed() -> None:
    """Refuse without Dash, with the extra that installs it."""
    if importlib.util.find_spec("dash") is None:
        raise _not_installed("there is no package dash")


def _not_installed(reason: str) -> InvalidParameter:
    return InvalidParameter(
        f"explore needs Dash, which cannot be imported ({reason}). Install it: "
        "pip install 'solvable[explore]'."
    )


def run_of(system: System, run: str | Path | StudyResult | None) -> StudyResult | None:
    """Load a run; if another version of the system made it, compute its predictions again."""
    if run is None:
        return None
    if not isinstance(run, StudyResult):
        snapshot = read(run)
        run = StudyResult(Path(run), system, snapshot)
    name = run.snapshot.meta["system"]
    if name != system.name:
        raise StudyConflict(
            f"{run.directory}: a run of {name}, not of {system.name}. Show it by "
            f"`solvable explore {name} {shlex.quote(str(run.directory))}`."
        )
    _check_parameters(system, run)
    return predict_anew(run, 1) if run.snapshot.meta["version"] != system.version else run


def _check_parameters(system: System, run: StudyResult) -> None:
    """Refuse a run of another version of the system with parameters that this one does not have."""
    for _, parameters, _ in run.snapshot.points:
        try:
            validate_parameters(system, parameters)
        except InvalidParameter as error:
            version = run.snapshot.meta["version"]
            raise StudyConflict(
                f"{run.directory}: version {version} of {system.name} made this run, and version "
                f"{system.version} refuses its parameters: {error} Show it with the solvable that "
                "made it, or run the study again."
            ) from None


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
