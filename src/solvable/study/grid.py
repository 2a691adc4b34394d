"""A study: a system over a grid of parameters and replicates, and the identity of each task."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter, unknown_choice
from solvable.frame import registry
from solvable.frame.parameters import check_limits
from solvable.frame.system import System
from solvable.study.parameters import canonical_json, validate_parameters, without_negative_zero
from solvable.study.toml import format_study, parse_study


@dataclass(frozen=True)
class Task:
    """One replicate at one setting of the parameters."""

    identity: str  # hash of system, version, parameters, replicate and seed
    point: str  # hash of system, version and parameters alone
    parameters: Mapping[str, Any]  # all parameters of the system, in JSON form
    replicate: int  # from 0

    def stream(self) -> np.random.Generator:
        """Return the random stream of the task, which depends only on the identity."""
        return task_stream(self.identity)


def task_stream(identity: str) -> np.random.Generator:
    """Return the Philox stream of a task, derived only from its identity."""
    return random_stream("task", identity)


def _hash(*parts: Any) -> str:
    # 128 bits: two of a million tasks have equal streams with probability 1e-27
    return hashlib.sha256(canonical_json(list(parts)).encode()).hexdigest()[:32]


def axis_values(name: str, values: Any) -> list[Any]:
    """Return the values of one parameter of a grid; a single value makes a list of one."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        values = [values]
    values = list(values)
    if not values:
        raise InvalidParameter(f"{name} has no values in the grid; give at least one.")
    return values


def _order(value: Any) -> tuple[int, float, str]:
    """Sort key: numbers by size, then words alphabetically."""
    if isinstance(value, (int, float)):
        return (0, value, "")
    return (1, 0.0, value if isinstance(value, str) else canonical_json(value))


class Study:
    """A system at all combinations of parameter values, with independent replicates.

    The order of the grid does not matter, and repeated values count once. The identity of a task is a
    hash of the system, its version, all parameters, the replicate and the seed. The random stream
    depends only on this identity, so a result does not depend on other tasks, their order, the number
    of workers or the machine.

    Parameters
    ----------
    system : System
        System to measure.
    grid : mapping, optional
        Values of each parameter (one value or a sequence); other parameters keep their defaults. These
        values replace those of the preset.
    replicates : int, optional
        Independent repetitions per point, at least 1; default the preset's, or 1.
    preset : str, optional
        Name of one of the system's presets to start from.
    seed : int
        Non-negative; another seed repeats the study with independent numbers.
    points : sequence of mapping, optional
        Settings that are no product: each is a mapping of the same parameters, and is combined with the
        grid of the others. The values of the preset for these parameters are replaced.

    Raises
    ------
    InvalidParameter
        On an unknown preset or parameter, a value out of range, an empty grid, or points that do not name
        the same parameters or name one of ``grid``.

    Notes
    -----
    Validation costs about 10 microseconds per point.
    """

    def __init__(
        self,
        system: System,
        grid: Mapping[str, Any] | None = None,
        replicates: int | None = None,
        *,
        preset: str | None = None,
        seed: int = 0,
        points: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        wanted: dict[str, Any] = {}
        if preset is not None:
            if preset not in system.presets:
                raise InvalidParameter(
                    unknown_choice(f"preset of {system.name}", preset, system.presets)
                )
            wanted.update(system.presets[preset].grid)
            replicates = system.presets[preset].replicates if replicates is None else replicates
        wanted.update(grid or {})
        rows = _alike(points, grid or {})
        wanted = {name: values for name, values in wanted.items() if name not in rows[0]}
        self.system = system
        self.preset = preset
        self.replicates = _whole("replicates", 1 if replicates is None else replicates, 1)
        self.seed = _whole("seed", seed, 0)
        self._points, self.grid = _product(system, wanted, rows, self.replicates)
        self.rows = _distinct([{name: point[name] for name in rows[0]} for point in self._points])

    @property
    def points(self) -> tuple[Mapping[str, Any], ...]:
        """Return the distinct settings in canonical order: by field, then by value."""
        return self._points

    def check_limits(self) -> None:
        """Refuse a study with a point that is too large to be measured."""
        for point in self._points:
            check_limits(self.system.parameters(**point))

    @cached_property
    def tasks(self) -> list[Task]:
        """Return all tasks: the first replicate of every point, then the second, and so on."""
        name, version = self.system.name, self.system.version
        fields = self.system.parameters.model_fields
        later = {field: fields[field].default for field in self.system.parameters.added}
        # what identifies a point: fields that came later only where they differ from their default
        known = [
            {field: v for field, v in point.items() if field not in later or v != later[field]}
            for point in self._points
        ]
        hashes = [_hash(name, version, point) for point in known]
        return [
            Task(_hash(name, version, own, replicate, self.seed), key, point, replicate)
            for replicate in range(self.replicates)
            for point, own, key in zip(self._points, known, hashes, strict=True)
        ]

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the set of tasks; equal for studies with the same tasks."""
        return _hash(sorted(task.identity for task in self.tasks))

    def to_toml(self) -> str:
        """Return the text of ``study.toml``, which suffices to repeat the study."""
        return format_study(
            {
                "system": self.system.name,
                "version": self.system.version,
                "preset": self.preset,
                "replicates": self.replicates,
                "seed": self.seed,
            },
            self.grid,
            self.rows,
        )

    @classmethod
    def from_toml(cls, text: str, system: System | None = None) -> Study:
        """Read a study back from the text of ``study.toml``.

        Parameters
        ----------
        text : str
            Text that :meth:`to_toml` wrote, or that was written by hand.
        system : System, optional
            The system, if no installed package provides it.

        Returns
        -------
        Study
            With the same fingerprint as the study that was written.

        Raises
        ------
        InvalidParameter
            If the text is not a study, or needs a version of the system that is not installed.
        UnknownSystem
            If no installed package provides the system.
        """
        read = parse_study(text)
        if system is None:
            system = registry.load(read.system)
        if system.name != read.system:
            raise InvalidParameter(
                f"study.toml is about {read.system}; the system given is {system.name}."
            )
        if read.version is not None and read.version != system.version:
            raise InvalidParameter(
                f"study.toml needs version {read.version} of {system.name}; installed is "
                f"{system.version}. Install the package version that provides it, or remove the "
                "line `version` to run the installed one."
            )
        if read.preset is not None and read.preset not in system.presets:
            raise InvalidParameter(
                unknown_choice(f"preset of {system.name}", read.preset, system.presets)
            )
        study = cls(system, read.grid, read.replicates, seed=read.seed, points=read.points)
        study.preset = read.preset
        return study


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InvalidParameter(f"{name} is {value!r}; allowed: whole numbers from {least}.")
    return int(value)


def _alike(
    points: Sequence[Mapping[str, Any]], grid: Mapping[str, Any]
) -> Sequence[Mapping[str, Any]]:
    """Return the points, or one without parameters; raise unless all name the same ones."""
    for number, point in enumerate(points, 1):
        if point.keys() != points[0].keys():
            raise InvalidParameter(
                f"point {number} names {', '.join(point) or 'nothing'}, the first one "
                f"{', '.join(points[0])}; allowed: the same parameters in all points."
            )
    twice = sorted(grid.keys() & points[0].keys()) if points else []
    if twice:
        raise InvalidParameter(
            f"{', '.join(twice)} is given in the points and in the grid; allowed: once. Leave it out of "
            "one."
        )
    return points or [{}]


def _distinct(points: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the distinct points in their order; none if they name no parameter."""
    found = {canonical_json(point): point for point in points if point}
    return list(found.values())


def _product(
    system: System, grid: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], replicates: int
) -> tuple[tuple[Mapping[str, Any], ...], dict[str, list[Any]]]:
    axes = {name: axis_values(name, values) for name, values in grid.items()}
    count = math.prod(len(values) for values in axes.values()) * len(rows) * replicates
    most = 1_000_000  # a larger grid is probably a mistake
    if count > most:
        sizes = " x ".join(f"{name}: {len(values)}" for name, values in axes.items())
        raise InvalidParameter(
            f"the grid has {count} tasks ({sizes}, {replicates} replicates); allowed: "
            f"{most}. Split the study."
        )
    found: dict[str, Mapping[str, Any]] = {}
    for row, combination in itertools.product(rows, itertools.product(*axes.values())):
        wanted = dict(zip(axes, combination, strict=True)) | dict(row)
        model = validate_parameters(system, wanted)
        point = without_negative_zero(model.model_dump(mode="json"))
        found[canonical_json(point)] = point
    names = list(system.parameters.model_fields)
    points = sorted(found.values(), key=lambda point: [_order(point[name]) for name in names])
    canonical = {}
    for name in (name for name in names if name in axes):
        distinct = {canonical_json(point[name]): point[name] for point in points}
        canonical[name] = sorted(distinct.values(), key=_order)
    return tuple(points), canonical
