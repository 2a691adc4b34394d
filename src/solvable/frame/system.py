"""A system as data: parameters, functions that measure and predict, claims and panels."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from solvable.errors import InvalidParameter, unknown_choice
from solvable.frame.agreement import Agreement
from solvable.frame.claims import Claim, NotTestable, Raised, Verdict, verdict_of
from solvable.frame.curves import Axis, Curve, curves_of, predict_each
from solvable.frame.drawn import Drawn, Fault, draw_panels, failed_figure
from solvable.frame.judging import with_judged
from solvable.frame.panels import Panel, PanelFunction
from solvable.frame.parameters import Parameters, check_limits
from solvable.frame.points import Metrics, Point
from solvable.frame.points_claim import PointsClaim
from solvable.frame.power import PowerRow, judged, power_row
from solvable.frame.references import Reference, resolved
from solvable.paths import error_line
from solvable.plots.figure import Figure


@dataclass(frozen=True, init=False)
class Preset:
    """A named grid of a system."""

    description: str
    """One line: what the preset shows and how long it takes."""
    grid: Mapping[str, Sequence[Any]]
    """Values of each parameter, of which the study takes all combinations; also given as text, as after
    ``--set``: ``"dimension=60 decay=0.5,1.0"``."""
    replicates: int = 3
    """Independent repetitions per point."""

    def __init__(
        self, description: str, grid: Mapping[str, Sequence[Any]] | str, replicates: int = 3
    ) -> None:
        object.__setattr__(self, "description", description)
        object.__setattr__(self, "grid", _grid_of(grid) if isinstance(grid, str) else grid)
        object.__setattr__(self, "replicates", replicates)


def _grid_of(text: str) -> dict[str, tuple[Any, ...]]:
    """Read values of parameters that are written as after ``--set``."""
    words = (word.partition("=") for word in text.split())
    # commas inside brackets are those of a list
    return {
        name: tuple(map(_value_of, re.split(r",(?![^\[]*\])", values))) for name, _, values in words
    }


def _value_of(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return tuple(value) if isinstance(value, list) else value


class System:
    """Target + learner + theory + claims: one solvable model of the literature, as data.

    A user's own system is one file that ends in ``system = System(...)``, named in the entry-point
    group ``solvable.systems``. Functions, claims and panels are given directly or as
    ``"module:name"``, where the module stands next to the file of the system and is imported when
    first used. A subclass that overrides the methods works as well.

    Parameters
    ----------
    name : str
        Name on the command line.
    title : str
        One line for a reader.
    version : str
        Part of a task's identity: raise it when ``measure`` changes its numbers.
    parameters : type
        Subclass of :class:`Parameters`.
    measure : callable or str
        ``measure(parameters, rng) -> metrics`` of one replicate; the result depends on nothing else.
    predict : callable or str
        ``predict(parameters) -> metrics`` with the same names, and further predicted quantities. Raise
        :class:`~solvable.errors.InvalidParameter` where the theory does not hold; the study continues
        and reports the reason. For a part of the metrics, return None and the reason under
        "no prediction". After any other exception the study continues and exits with status 1.
    teacher : callable or str, optional
        ``teacher(parameters, rng) -> arrays`` that define the target of a replicate; the generator
        starts in the state that ``measure`` receives.
    axis : Axis, optional
        The parameter along which panels are drawn.
    claims : sequence of Claim and Agreement, or str
        Claims that verdicts test.
    panels : sequence of Panel and functions of curves, or str
        Figures; they need an axis.
    curve : callable or str, optional
        ``curve(parameters, coordinates) -> list of metrics``: a theory line, where that is faster than
        ``predict`` at each coordinate.
    chance : callable or str, optional
        ``chance(parameters, prediction) -> metrics`` of a learner at chance level, for the power of
        claims.
    presets : mapping of str to Preset
        At least ``quick`` (under a minute on two cores).
    tensors : bool
        True if ``measure`` passes its samples through :func:`solvable.fitting.devices.on_device` to a
        learner that takes tensors.
    references : sequence of str and Reference
        Keys of ``references.bib`` in the folder of the system or a package around it, or entries with
        their text.
    summary : str, optional
        First paragraph of a report; default the docstring of the module, or of the subclass.

    Examples
    --------
    >>> class Mean(Parameters):
    ...     samples: int = 4
    >>> def measure(parameters, rng):
    ...     return {"square": rng.standard_normal(parameters.samples).mean() ** 2}
    >>> def predict(parameters):
    ...     return {"square": 1 / parameters.samples}
    >>> system = System(name="mean", title="A mean", version="1", parameters=Mean,
    ...                 measure=measure, predict=predict)
    >>> system.predict(Mean(samples=10))
    {'square': 0.1}
    """

    # A subclass sets these on the class, an instance on itself.
    name: ClassVar[str]
    title: ClassVar[str]
    version: ClassVar[str]
    parameters: ClassVar[type[Parameters]]
    presets: ClassVar[Mapping[str, Preset]] = {}
    references: ClassVar[Sequence[Reference]] = ()
    axis: ClassVar[Axis | None] = None
    tensors: ClassVar[bool] = False
    _module = ""
    _parts: Mapping[str, Any] = {}

    def __init__(
        self,
        *,
        name: str | None = None,
        title: str | None = None,
        version: str | None = None,
        parameters: type[Parameters] | None = None,
        measure: Callable[..., Any] | str | None = None,
        predict: Callable[..., Any] | str | None = None,
        teacher: Callable[..., Any] | str | None = None,
        axis: Axis | None = None,
        claims: Sequence[Claim | PointsClaim | Agreement] | str | None = None,
        panels: Sequence[Panel | PanelFunction] | str | None = None,
        curve: Callable[..., Any] | str | None = None,
        chance: Callable[..., Any] | str | None = None,
        presets: Mapping[str, Preset] | None = None,
        references: Sequence[Reference | str] | None = None,
        summary: str | None = None,
        tensors: bool | None = None,
    ) -> None:
        self._module = _caller() if type(self) is System else type(self).__module__
        data: dict[str, Any] = {"name": name, "title": title, "version": version}
        data |= {"parameters": parameters, "presets": presets, "references": references}
        data |= {"axis": axis, "tensors": tensors}
        for attribute, value in data.items():
            if value is not None:
                setattr(self, attribute, value)
        parts: dict[str, Any] = {"measure": measure, "predict": predict, "teacher": teacher}
        parts |= {"claims": claims, "panels": panels, "curve": curve, "chance": chance}
        parts |= {"summary": summary}
        self._parts = {part: value for part, value in parts.items() if value is not None}
        missing = [
            part for part in ("name", "title", "version", "parameters") if not hasattr(self, part)
        ]
        for part in ("measure", "predict"):
            overridden = getattr(type(self), part) is not getattr(System, part)
            missing += [] if overridden or part in self._parts else [part]
        if axis is not None and parameters is not None and axis.value is None:
            fields = list(parameters.model_fields)
            if axis.parameter not in fields:
                raise InvalidParameter(unknown_choice("axis", axis.parameter, fields))
        self.references = resolved(self.references, self._module)  # type: ignore[misc]
        if missing:
            raise InvalidParameter(
                f"a system lacks {', '.join(missing)}; allowed: all of name, title, version, "
                "parameters, measure and predict given."
            )

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle by name if the system is an attribute of its module."""
        names = vars(sys.modules.get(self._module, sys)).items()
        found = next((name for name, value in names if value is self), None)
        known = found is not None and type(self) is System
        return (_look_up, (self._module, found)) if known else super().__reduce_ex__(protocol)

    def _part(self, name: str, default: Any = None) -> Any:
        """Return a function or rows, imported if they were given by name."""
        value = self._parts.get(name, default)
        if not isinstance(value, str) or name == "summary":
            return value
        module, _, attribute = value.partition(":")
        place = (
            module if "." in module else f"{self._module.rpartition('.')[0]}.{module}".lstrip(".")
        )
        try:
            found = getattr(import_module(place), attribute)
        except Exception as error:
            # The module exists, but one of its imports is missing, or its code raises.
            absent = isinstance(error, ModuleNotFoundError) and error.name == place
            if absent or (isinstance(error, AttributeError) and place in sys.modules):
                problem = f"there is no {attribute!r} in {place}"
            else:
                problem = f"importing {place} raised {error_line(error)}"
            raise InvalidParameter(
                f"system {self.name!r} names {value!r} as its {name}, and {problem}; allowed: "
                "'module:name' in the directory of the file of the system."
            ) from error
        self._parts = {**self._parts, name: found}
        return found

    def measure(self, parameters: Any, rng: np.random.Generator) -> Metrics:
        """Run one replicate; the result depends on the parameters and the generator alone."""
        check_limits(parameters)
        metrics: Metrics = self._part("measure")(parameters, rng)
        return metrics

    def predict(self, parameters: Any) -> Metrics:
        """Predict the same metrics, and quantities that are not measured."""
        metrics: Metrics = self._part("predict")(parameters)
        return metrics

    def teacher(self, parameters: Any, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
        """Return arrays that define the target of one replicate; none by default.

        The generator starts in the state that :meth:`measure` receives. If ``measure`` draws its target
        first, this method returns the same target.
        """
        check_limits(parameters)
        function = self._part("teacher")
        return {} if function is None else function(parameters, rng)

    def repeat_command(
        self, grid: Mapping[str, Sequence[Any]], replicates: int, seed: int
    ) -> str | None:
        """Return the command that repeats a run; None if it is ``solvable run``."""
        return None

    def chance(self, parameters: Any, prediction: Metrics) -> Metrics:
        """Return the metrics of a learner at chance level; none by default."""
        function = self._part("chance")
        return {} if function is None else function(parameters, prediction)

    @property
    def claims(self) -> Sequence[Claim | PointsClaim | Agreement]:
        """Claims that verdicts test."""
        rows: Sequence[Claim | PointsClaim | Agreement] = self._part("claims", ())
        return rows

    @property
    def panels(self) -> Sequence[Panel | PanelFunction]:
        """Panels that figures draw."""
        rows: Sequence[Panel | PanelFunction] = self._part("panels", ())
        return rows

    @property
    def summary(self) -> str:
        """First paragraph of a report: the docstring up to its first numpydoc section."""
        own = type(self).__doc__ if type(self) is not System else sys.modules[self._module].__doc__
        lines = inspect.cleandoc(self._parts.get("summary") or own or "").splitlines()
        for index, line in enumerate(lines):
            # A numpydoc section is a title underlined with dashes.
            if line and set(line) == {"-"} and index:
                lines = lines[: index - 1]
                break
        return "\n".join(lines).strip()

    def settled(self, points: Sequence[Point]) -> list[Point]:
        """Return the points with `setting` filled in."""
        return [
            point
            if point.setting is not None
            else replace(point, setting=self.parameters(**point.parameters))
            for point in points
        ]

    def verdicts(self, points: Sequence[Point]) -> list[Verdict]:
        """Return one verdict per claim on the points of a study that have a prediction.

        A claim that would also hold with a prediction wrong by its stated power, or with a learner at
        chance level, is not testable on these records. If the code of a claim raises, its verdict is
        "error" with the exception as the reason, and the other claims are judged.
        """
        refused, whole = refusals(points), any(point.refused for point in points)
        try:
            points = self.settled([point for point in points if not point.refused])
        except Exception as error:  # records of another version may lack a metric
            raised = Raised(error_line(error))
            return [verdict_of(claim, raised) for claim in self.claims]
        if not points:
            missing = NotTestable(refused or "no task of this study has finished")
            return [verdict_of(claim, missing) for claim in self.claims]
        verdicts = [judged(claim, points, self.axis, self.chance) for claim in self.claims]
        return [
            replace(verdict, reason=f"{verdict.reason}; {refused}")
            if verdict.status == "not testable" and (whole or _lacks_part(claim, points))
            else verdict
            for claim, verdict in zip(self.claims, verdicts, strict=True)
        ]

    def power(self, points: Sequence[Point]) -> list[PowerRow]:
        """Return the smallest error of a prediction with which each claim fails on these points."""
        try:
            points = self.settled([point for point in points if not point.refused])
        except Exception:
            return []  # the verdicts contain the reason
        return [power_row(claim, points, self.axis, self.chance) for claim in self.claims if points]

    def curves(
        self, points: Sequence[Point], seconds: float | None = None, resolution: int | None = None
    ) -> list[Curve]:
        """Group points along the axis, each group with its theory line of `resolution` places.

        Lines that would take more CPU time than `seconds` together are interpolated between fewer
        predictions.
        """
        if self.axis is None:
            return []
        axis = self.axis if resolution is None else replace(self.axis, resolution=resolution)
        points = self._with_judged(self.settled(points))
        if self.draws_whole_lines:
            return curves_of(points, axis, self.along, theory=self.predict)
        return curves_of(points, axis, self.along, seconds, self.predict)

    @property
    def draws_whole_lines(self) -> bool:
        """True if the system has its own function that computes a whole theory line at once."""
        return self._part("curve") is not None

    @property
    def along(self) -> Callable[[Any, np.ndarray], Sequence[Metrics]]:
        """Function from a setting and coordinates on the axis to predictions."""
        assert self.axis is not None
        whole: Callable[[Any, np.ndarray], Sequence[Metrics]] | None = self._part("curve")
        return whole or predict_each(self.predict, self.axis)

    def _with_judged(self, points: Sequence[Point]) -> list[Point]:
        """Return the points with the metrics that claims judge; unchanged if claims raise."""
        try:
            return with_judged(self.claims, points)
        except Exception:
            return list(points)  # the verdicts contain the error

    def figures(self, points: Sequence[Point]) -> list[Figure]:
        """Draw every panel for every curve; exceptions of panels are raised."""
        curves = self.curves(points)
        return [figure for panel in self.panels for figure in panel(curves)] if curves else []

    def drawn(
        self, points: Sequence[Point], seconds: float | None = None, resolution: int | None = None
    ) -> Drawn:
        """Draw every panel for every curve; a figure that raises becomes empty, with a fault."""
        try:
            if type(self).figures is System.figures:
                curves = self.curves(points, seconds, resolution)
                return draw_panels(self.panels if curves else [], curves)
            return draw_panels([lambda _: self.figures(points)], [])
        except Exception as error:
            line = error_line(error)
            return Drawn([failed_figure("figures", line)], [Fault("panel", "figures", line)])


def refusals(points: Sequence[Point]) -> str:
    """Return why points lack a prediction or a part of it; empty if nothing is missing."""
    kinds: dict[str, list[tuple[str, Point]]] = {}
    for point in points:
        # reasons that differ only in their numbers are one kind, shown by its first
        reasons = re.split(r"(?<=\.); ", point.refusal) if point.refusal else []
        for reason in reasons:
            kinds.setdefault(re.sub(r"\d[\d.e+-]*", "#", reason), []).append((reason, point))
    sentences = []
    for lacking in sorted(kinds.values(), key=len, reverse=True)[:3]:
        reason, first = lacking[0]
        what = "no prediction" if first.refused else "part of the prediction is missing"
        where = f" at {len(lacking)} of {len(points)} points" if len(lacking) < len(points) else ""
        sentences.append(f"{what}{where}: {reason}")
    return "; ".join(sentence.rstrip(".") for sentence in sentences)


def _lacks_part(claim: Any, points: Sequence[Point]) -> bool:
    """Return True if a point that states a reason lacks a prediction that the claim names."""
    named = [getattr(claim, name, None) for name in ("metric", "expected")]
    quantities = [name for name in named if isinstance(name, str)]
    partly = [point.prediction for point in points if point.refusal]
    return any(prediction.get(name) is None for prediction in partly for name in quantities)


def _caller() -> str:
    """Return the name of the module that defines a system."""
    return str(sys._getframe(2).f_globals.get("__name__", "__main__"))


def _look_up(module: str, name: str) -> System:
    found: System = getattr(import_module(module), name)
    return found
