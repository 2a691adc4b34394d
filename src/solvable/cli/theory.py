"""``solvable theory``: the prediction alone."""

from __future__ import annotations

import sys

from solvable.cli.options import Flag, Settings


def theory(system: str, /, *, set_: Settings = None, json: Flag = False) -> int:
    """Print what theory predicts, without running anything.

    For example:
      solvable theory sequential-recovery
      solvable theory sequential-recovery --set dimension=60 features=8 --json
      solvable theory sequential-recovery --set samples=1e4,1e5,1e6

    Parameters not set have their defaults, not the values of a preset;
    `solvable theory SYSTEM --help` lists them.

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
    from solvable.frame import registry

    loaded = registry.load(system)
    grid = read_settings(loaded, set_)
    from threadpoolctl import threadpool_limits

    from solvable.study import Study, validate_parameters
    from solvable.study.execute import plain_metrics

    found = []
    with threadpool_limits(limits=1):
        for point in Study(loaded, grid).points:
            parameters = validate_parameters(loaded, point)
            found.append((dict(point), plain_metrics(loaded.predict(parameters))))
    is_grid = any(len(values) > 1 for values in grid.values())
    if json:
        from solvable.cli.terminal import write_json

        answers = [
            {"system": loaded.name, "parameters": parameters, "prediction": prediction}
            for parameters, prediction in found
        ]
        write_json(answers if is_grid else answers[0])
        return 0
    from solvable.cli.tables import grid_tables, prediction_tables
    from solvable.cli.terminal import console_for, write, write_title

    varied = [name for name, values in grid.items() if len(values) > 1]
    fixed = {name: [value] for name, value in found[0][0].items() if name not in varied}
    write_title(f"{loaded.name}: predicted", fixed)
    width = console_for(sys.stdout).width
    tables = grid_tables(varied, found, width) if is_grid else prediction_tables(found[0][1])
    for table in tables:
        write("", table)
    return 0
