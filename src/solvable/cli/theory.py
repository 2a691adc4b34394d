"""``solvable theory``: predictions without a measurement."""

from __future__ import annotations

import sys

from solvable.cli.settings import Flag, Settings


def theory(system: str, /, *, set_: Settings = None, json: Flag = False) -> int:
    """Print the predictions of a system, without a measurement.

    For example:
      solvable theory sequential-recovery
      solvable theory sequential-recovery --set dimension=60 features=8 --json
      solvable theory sequential-recovery --set samples=1e4,1e5,1e6

    Parameters not set have their defaults, not the values of a preset;
    `solvable theory SYSTEM --help` lists them. If a prediction
    raises, its line is the exception, and the exit status is 1.

    Parameters
    ----------
    system
        Name of a system, as in `solvable list`.
    set_
        Parameters as name=value; commas make a grid: samples=1000,2000.
    json
        Print {"system", "parameters", "prediction"}; for a grid, a list of these.
    """
    from solvable.cli.settings import read_settings
    from solvable.cli.terminal import note, write, write_json, write_title
    from solvable.frame import registry
    from solvable.plots.tables import console_for
    from solvable.study import predictions
    from solvable.study.parameters import format_settings
    from solvable.verbs import theory_of

    loaded = registry.load(system)
    found = theory_of(loaded, **read_settings(loaded, set_))
    status = 1 if found.raised else 0
    if status:
        note(f"solvable: {len(found.raised)} of {len(found.points)} predictions raised an error.")
    if json:
        answers = [{"system": found.system, **point._asdict()} for point in found.points]
        write_json(answers if found.varied else answers[0])
        return status
    first = found.points[0].parameters
    fixed = {name: [value] for name, value in first.items() if name not in found.varied}
    write_title(f"{found.system}: predicted", format_settings(fixed))
    for table in predictions.tables(found, console_for(sys.stdout).width):
        write("", table)
    return status
