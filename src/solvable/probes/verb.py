"""The function behind ``solvable probe``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

import numpy as np

from solvable.arrays import check_integer
from solvable.errors import InvalidParameter
from solvable.probes.learners import check_learner
from solvable.probes.named_objects import remember
from solvable.probes.results import ProbeResult
from solvable.probes.system import feature_names, system
from solvable.probes.targets import LABELS, STRINGS, settings_of
from solvable.progress import Progress, reporter
from solvable.study import Study, run_study
from solvable.study.dispatch import count_workers
from solvable.study.outputs import check_directory, write_outputs

SAMPLES = (200, 800, 3200, 12800)
"""Numbers of rows if none are given."""


def probe(
    learner: Any,
    target: Any = "sequential-recovery",
    *,
    samples: Sequence[int] | int = SAMPLES,
    seeds: int = 2,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    steps: Sequence[int] | int = (),
    refit: bool = False,
    output: str | Path | None = None,
    workers: int | None = None,
    device: str | None = None,
    progress: Progress | bool | None = None,
) -> ProbeResult:
    """Measure which hidden features a learner finds at which number of rows: ``solvable probe``.

    Parameters
    ----------
    learner : str, estimator, torch module, callable, or a list of these
        Name of a built-in learner, ``"module:name"``, an estimator with ``fit`` and ``predict``, or a
        class or function that returns one, called with the numbers of inputs and outputs if it requires
        arguments. Objects run in this process; names run in parallel.
    target : str or object
        System of the library, ``"module:name"``, or an object with ``sample``, ``clean`` and ``parts``.
    samples : int or sequence of int
        Numbers of training rows, 8 or more.
    seeds : int
        Draws of target and rows at each number of rows, at least 1.
    seed : int
        Another seed repeats the probe with independent draws.
    settings : mapping, optional
        Parameters of the target.
    steps : int or sequence of int
        Training steps at which shares are measured as well; one number means 30 steps up to it. A step is
        one of the optimiser for networks, a pass over the rows for ``partial_fit``, a tree for ensembles
        with a warm start; an own ``fit(X, y, observe)`` calls ``observe(step)`` after each step.
    refit : bool
        Also train on the same rows from another start, and measure the common part of both rests.
    output : path, optional
        Run directory with a report; a stopped probe is resumed. Default: a temporary directory.
    workers : int, optional
        Local processes; default one per core, one for objects.
    device : str, optional
        Device in torch's notation on which torch modules are trained.
    progress : callable or bool, optional
        As in :func:`solvable.run`.

    Returns
    -------
    ProbeResult
        With ``table``, ``half_samples``, ``figure(name)`` and ``to_dataframe()``.

    Raises
    ------
    InvalidParameter
        If a learner, a target or a setting is not one that is allowed.

    Notes
    -----
    Docs: docs/probe.md and docs/derivations/probe.md. A learner that raises loses one setting alone.

    Examples
    --------
    >>> import solvable
    >>> from sklearn.linear_model import Ridge
    >>> settings = {"dimension": 10, "features": 2}
    >>> found = solvable.probe(Ridge(), samples=[100, 200], settings=settings)
    >>> [row["status"] for row in found.half_samples]
    ['not within the last size', 'not within the last size']
    """
    study, here = probe_study(learner, target, samples, seeds, seed, settings, steps, refit)
    directory = mkdtemp(prefix="solvable-") if output is None else Path(output)
    if output is not None:
        check_directory(Path(output))
    workers = 1 if here and workers is None else workers
    try:
        with reporter(progress) as report:
            result = run_study(study, directory, workers=workers, device=device, progress=report)
    except BaseException:
        if output is None:
            rmtree(directory, ignore_errors=True)
        raise
    if output is None:
        finalize(result, rmtree, directory, ignore_errors=True)
    elif result.points:
        write_outputs(result, count_workers(workers))
    return ProbeResult(result, study.grid["target"][0], study.grid["settings"][0])


def probe_study(
    learner: Any,
    target: Any,
    samples: Sequence[int] | int,
    seeds: int,
    seed: int,
    settings: Mapping[str, Any] | None,
    steps: Sequence[int] | int = (),
    refit: bool = False,
) -> tuple[Study, bool]:
    """Return the study of a probe after all checks, and whether objects keep it in this process."""
    if settings is not None and not isinstance(settings, Mapping):
        raise InvalidParameter(
            f"settings is a {type(settings).__name__}; allowed: a mapping of names to values."
        )
    check_integer("seeds", seeds, 1)
    learners = list(learner) if isinstance(learner, list | tuple) else [learner]
    if not learners:
        raise InvalidParameter("learner is an empty list; allowed: at least one learner.")
    names = [one if isinstance(one, str) else remember(one) for one in learners]
    subject = target if isinstance(target, str) else remember(target)
    here = any(name.startswith("given:") for name in (*names, subject))
    text = json.dumps(_checked(subject, dict(settings or {})), sort_keys=True)
    feature_names(subject, text)  # refuses what cannot be probed
    kinds = {STRINGS: "classes", LABELS: "labels"}
    for name in names:
        check_learner(name, kinds.get(subject, "numbers"))  # type: ignore[arg-type]
    grid = {
        "learner": names, "target": [subject], "settings": [text], "samples": samples,
        "steps": [json.dumps(_steps(steps))], "refit": [refit],
    }  # fmt: skip
    return Study(system, grid, seeds, seed=seed), here


def _steps(steps: Sequence[int] | int) -> list[int]:
    """Return ascending steps; one number stands for 30 steps up to it, evenly spaced in the logarithm."""
    wanted = [steps] if isinstance(steps, int) else list(steps)
    for step in wanted:
        check_integer("steps", step, 1)
    if len(wanted) == 1:
        wanted = [round(float(step)) for step in np.geomspace(1, wanted[0], 30)]
    return sorted(set(wanted))


def _checked(target: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings in JSON form; those of a target of the library are validated and typed."""
    if ":" not in target:
        parameters = settings_of(target, json.dumps(settings))
        plain = parameters.model_dump(mode="json")
        return {name: plain[name] for name in settings}
    try:
        return dict(json.loads(json.dumps(settings)))
    except (TypeError, ValueError) as error:
        raise InvalidParameter(
            f"settings of {target!r} are no plain data ({error}); allowed: numbers, text and lists."
        ) from error
