"""``solvable probe``: which hidden features does a learner find, and at which number of rows?"""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from solvable.cli.settings import Flag, Settings

Sizes = Annotated[list[int] | None, Parameter(consume_multiple=True, negative=())]


def probe(
    *learner: str,
    target: str = "sequential-recovery",
    set_: Settings = None,
    samples: Sizes = None,
    steps: Sizes = None,
    refit: Flag = False,
    seeds: int = 2,
    seed: int = 0,
    workers: int | None = None,
    device: str | None = None,
    output: Path | None = None,
    json: Flag = False,
    quiet: Flag = False,
) -> int:
    """Measure which hidden features a learner finds, feature by feature, against theory.

    For example:
      solvable probe mlp
      solvable probe mlp rbf-kernel --target sequential-recovery --samples 200 800 3200 --seeds 4
      solvable probe mlp boosted-trees --samples 5000 --steps 4000
      solvable probe sklearn.neighbors:KNeighborsRegressor --samples 400 1600
      solvable probe mymodule:make_network --target separable-multi-index --output runs/probe

    Built in: mlp, mlp-small-start, mlp-large-start, mlp-decay, boosted-trees,
    rbf-kernel, random-features, spectral, lofi; for strings cnn and transformer.
    An own learner is an estimator with fit and predict, a torch module, or a
    function that returns one (called with the numbers of inputs and outputs if
    it requires arguments).

    Parameters
    ----------
    learner
        Learners: names, or module:name of an own one.
    target
        Target: sequential-recovery, hierarchical-multi-index, separable-multi-index, single-index,
        quadratic-network, compositional-target, random-hierarchy, label-hierarchy, or module:name.
    set_
        Parameters of the target as name=value. Targets are small and have label noise unless set.
    samples
        Numbers of training rows. [default: 200 800 3200 12800]
    steps
        Training steps at which shares are measured as well; one number means 30 steps up to it. For
        networks, learners with partial_fit (passes over the rows) and ensembles of trees.
    refit
        Also train on the same rows from another start, and measure the common part of both rests.
    seeds
        Draws of target and rows at each number of rows; from 4 on there are intervals.
    seed
        Another seed repeats the probe with independent draws.
    workers
        Local processes. [default: one per core]
    device
        Device on which torch modules are trained, such as cuda.
    output
        Run directory with a report and figures. [default: solvable-runs/probe-FINGERPRINT]
    json
        Print only {"features": [...], "half_samples": [...], "half_steps": [...], ...}.
    quiet
        Print only errors (and the JSON).
    """
    from solvable.cli.settings import parse_settings
    from solvable.cli.terminal import note, write, write_json, write_prose
    from solvable.errors import InvalidParameter
    from solvable.plots.words import counted
    from solvable.probes import view
    from solvable.probes.results import ProbeResult
    from solvable.probes.verb import SAMPLES, probe_study
    from solvable.progress import progress_bar
    from solvable.study import run_study
    from solvable.study.dispatch import count_workers
    from solvable.study.outputs import check_directory, write_outputs

    if not learner:
        raise InvalidParameter("no learner is given; allowed: names such as mlp, or module:name.")
    settings = {name: _single(name, values) for name, values in parse_settings(set_).items()}
    study, _ = probe_study(
        list(learner), target, samples or SAMPLES, seeds, seed, settings, steps or (), refit
    )
    directory = output or Path("solvable-runs") / f"probe-{study.fingerprint[:8]}"
    check_directory(directory)
    if not quiet:
        note(f"probe of {target}: {counted(len(study.tasks), 'fit')}, in {directory}")
    with progress_bar(shown=not quiet) as show:
        result = run_study(study, directory, workers=workers, device=device, progress=show)
    if result.interrupted:
        note("solvable: interrupted; finished fits are kept. The same command resumes.")
        return 130
    found = ProbeResult(result, study.grid["target"][0], study.grid["settings"][0])
    for failed in found.failures[:5]:
        note(f"solvable: failed: {failed['learner']}, {failed['samples']} rows: {failed['error']}")
    written = write_outputs(result, count_workers(workers)) if result.records else None
    if json:
        write_json(found.to_dict())
    elif not quiet and written is not None:
        write_prose(view.line(found), style="bold")
        for table in view.tables(found):
            write("", table)
        write("")
        write_prose(*view.notes(found))
        write("", f"report   {written.report}", f"figures  {written.report.parent / 'figures'}")
    return 1 if result.failures else 0


def _single(name: str, values: list[Any]) -> Any:
    """Return the one value of a setting; numbers are read, as an own target has no parameters."""
    from solvable.errors import InvalidParameter

    if len(values) != 1:
        raise InvalidParameter(
            f"--set {name} has {len(values)} values; allowed: one. Probe each value with a command of "
            "its own, and compare the runs."
        )
    try:
        return json_text.loads(values[0]) if isinstance(values[0], str) else values[0]
    except ValueError:
        return values[0]
