"""``solvable explore``: a local page on which theory lines follow sliders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from solvable.cli.settings import Flag, Settings

if TYPE_CHECKING:
    from solvable.frame.system import System


def explore(
    system: str,
    run: Path | None = None,
    /,
    *,
    set_: Settings = None,
    port: int | None = None,
    no_browser: Flag = False,
    output: Path = Path("solvable-runs"),
) -> int:
    """Open a page with a slider for each parameter of a system.

    For example:
      solvable explore quadratic-network
      solvable explore quadratic-network solvable-runs/quadratic-network-1a2b3c4d
      solvable explore matrix-sensing --set noise=0.5 --port 8000 --no-browser

    Theory lines follow the sliders; points of a run are drawn on them. The address
    holds the setting. The page can start a run, which is kept in its directory as
    that of `solvable run`. Ctrl-C ends it.

    The page needs pip install 'solvable[explore]'. Only this machine can reach it,
    and only with the token in the address.

    Parameters
    ----------
    system
        Name of a system, as in `solvable list`.
    run
        Run directory, whose points are shown.
    set_
        Parameters at the start as name=value. [default: those of the run, or of the preset quick]
    port
        Port on 127.0.0.1. [default: a free one]
    no_browser
        Print the address without opening a browser.
    output
        Directory of runs that the page starts.
    """
    from solvable.cli.settings import read_settings
    from solvable.errors import InvalidParameter
    from solvable.frame import registry

    loaded = registry.load(system)
    settings: dict[str, Any] = {}
    for name, values in read_settings(loaded, set_).items():
        if len(values) > 1:
            raise InvalidParameter(
                f"--set {name} has {len(values)} values; allowed: one, as the page has a slider."
            )
        settings[name] = values[0]
    return _serve(loaded, run, settings, port, output, no_browser)


def _serve(
    loaded: System,
    run: Path | None,
    settings: dict[str, Any],
    port: int | None,
    output: Path,
    no_browser: bool,
) -> int:
    """Serve the page until Ctrl-C or SIGTERM."""
    import signal
    import sys
    import threading

    from solvable.cli.terminal import note
    from solvable.explore.functions import explore_system, open_browser

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    page = explore_system(loaded, run, port=port, output=output, **settings)
    signal.signal(signal.SIGTERM, stop)
    opened = None
    try:
        print(page.address, flush=True)
        note("Only this machine can open the page, with the whole address. Ctrl-C ends it.")
        if not no_browser:
            opened = open_browser(page.address)
        threading.Event().wait()
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        if active := page.explorer.runs.active():
            note(f"solvable: stopping the run in {active.directory}; finished tasks are kept.")
    finally:
        page.close()
        if opened is not None:
            opened.unlink(missing_ok=True)
    return 0
