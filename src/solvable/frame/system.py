"""A system as data: parameters, the functions that measure and predict, claims and panels as rows."""

from __future__ import annotations

import inspect
import sys
from collections import Counter
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
from solvable.frame.estimates import PointsClaim
from solvable.frame.judging import with_judged
from solvable.frame.panels import Panel, PanelFunction
from solvable.frame.parameters import Parameters, check_limits
from solvable.frame.points import Metrics, Point
from solvable.frame.power import PowerRow, judged, power_row
from solvable.frame.references import Reference, resolved
from solvable.paths import error_line
from solvable.plots.figure import Figure


@dataclass(frozen=True)
class Preset:
    """A named grid of a system.

    Parameters
    ----------
    description : str
        One line: what it shows and how long it takes.
    grid : mapping
        Parameter name to the values it takes; the study is their product.
    replicates : int
        Independent repetitions per point.
    """

    description: str
    grid: Mapping[str, Sequence[Any]]
    replicates: int = 3


class System:
    """Target + learner + theory + claims: one solvable model of the literature, as data.

    A user's own system is one file that ends in ``system = System(...)``, named in the entry-point
    group ``solvable.systems``. Functions and rows are given as they are or by name, as
    ``"module:name"`` beside the file of the system, imported when first used. A subclass that
    overrides the methods works as well.

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
        ``measure(parameters, rng) -> metrics`` of one replicate; they depend on nothing else.
    predict : callable or str
        ``predict(parameters) -> metrics``: the same names, and quantities that only theory knows.
        :class:`~solvable.errors.InvalidParameter` where the theory does not hold: the study goes on,
        and says why there is no prediction. For a part of the metrics: None, and the reason under
        "no prediction". Any other exception is an error: the study goes on as well, and exits with
        status 1.
    teacher : callable or str, optional
        ``teacher(parameters, rng) -> arrays`` that define the target of a replicate; the generator
        starts as that of ``measure``.
    axis : Axis, optional
        The parameter along which panels are drawn and places are told.
    claims : sequence of Claim and Agreement, or str
        What is tested.
    panels : sequence of Panel and functions of curves, or str
        What is drawn; needs an axis.
    curve : callable or str, optional
        ``curve(parameters, coordinates) -> list of metrics``: a faster way to a theory line than
        ``predict`` at each coordinate.
    chance : callable or str, optional
        ``chance(parameters, prediction) -> metrics`` of a learner that knows nothing, for the power
        of claims.
    presets : mapping of str to Preset
        At least ``quick`` (under a minute on two cores).
    references : sequence of str and Reference
        Sources: keys of ``references.bib`` in the folder of the system or a package around it, or
        entries with their text.
    summary : str, optional
        What a report says first; default the docstring of the module, or of the subclass.

    Raises
    ------
    InvalidParameter
        If a name does not resolve, or a row names a metric that ``measure`` or ``predict`` do not
        return.

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

    # A subclass sets them on the class, an instance made of data on itself.
    name: ClassVar[str]
    title: ClassVar[str]
    version: ClassVar[str]
    parameters: ClassVar[type[Parameters]]
    presets: ClassVar[Mapping[str, Preset]] = {}
    references: ClassVar[Sequence[Reference]] = ()
    axis: ClassVar[Axis | None] = None
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
    ) -> None:
        self._module = _caller() if type(self) is System else type(self).__module__
        data: dict[str, Any] = {
            "name": name,
            "title": title,
            "version": version,
            "parameters": parameters,
        }
        data |= {"presets": presets, "references": references, "axis": axis}
        for attribute, value in data.items():
            if value is not None:
                setattr(self, attribute, value)
        parts: dict[str, Any] = {
            "measure": measure,
            "predict": predict,
            "teacher": teacher,
            "claims": claims,
        }
        parts |= {"panels": panels, "curve": curve, "chance": chance, "summary": summary}
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
        """Travel to a worker by name where the system is a name of its module."""
        names = vars(sys.modules.get(self._module, sys)).items()
        found = next((name for name, value in names if value is self), None)
        known = found is not None and type(self) is System
        return (_look_up, (self._module, found)) if known else super().__reduce_ex__(protocol)

    def _part(self, name: str, default: Any = None) -> Any:
        """A function or rows, imported if they were given by name."""
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
            # The module is there if what it imports is missing, or its own code raises.
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
        """Predict the same metrics, and quantities that only theory knows."""
        metrics: Metrics = self._part("predict")(parameters)
        return metrics

    def teacher(self, parameters: Any, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
        """Arrays that define the target of one replicate, stored with the study; none by default.

        The generator starts in the state in which :meth:`measure` receives it, so a system whose
        ``measure`` draws its target first returns here exactly the target that was measured.
        """
        check_limits(parameters)
        function = self._part("teacher")
        return {} if function is None else function(parameters, rng)

    def chance(self, parameters: Any, prediction: Metrics) -> Metrics:
        """Metrics of a learner that knows nothing; none by default."""
        function = self._part("chance")
        return {} if function is None else function(parameters, prediction)

    @property
    def claims(self) -> Sequence[Claim | PointsClaim | Agreement]:
        """What is tested."""
        rows: Sequence[Claim | PointsClaim | Agreement] = self._part("claims", ())
        return rows

    @property
    def panels(self) -> Sequence[Panel | PanelFunction]:
        """What is drawn."""
        rows: Sequence[Panel | PanelFunction] = self._part("panels", ())
        return rows

    @property
    def summary(self) -> str:
        """What a report says first: sentences up to the first numpydoc section."""
        own = type(self).__doc__ if type(self) is not System else sys.modules[self._module].__doc__
        lines = inspect.cleandoc(self._parts.get("summary") or own or "").splitlines()
        for index, line in enumerate(lines):
            # A numpydoc section is a title underlined with dashes.
            if line and set(line) == {"-"} and index:
                lines = lines[: index - 1]
                break
        return "\n".join(lines).strip()

    def settled(self, points: Sequence[Point]) -> list[Point]:
        """The points with their parameters as the system's own model."""
        return [
            point
            if point.setting is not None
            else replace(point, setting=self.parameters(**point.parameters))
            for point in points
        ]

    def verdicts(self, points: Sequence[Point]) -> list[Verdict]:
        """One verdict per claim on the points of a study that have a prediction.

        A claim holds only if it would have failed with a prediction wrong by its stated power, and with
        a learner by chance; else these records cannot test it. The verdict of a claim whose code raises
        is "error", with the exception in one line as its reason; the others are judged.
        """
        refused = refusals(points)
        try:
            points = self.settled([point for point in points if not point.refused])
        except Exception as error:  # as of records of another version
            raised = Raised(error_line(error))
            return [verdict_of(claim, raised) for claim in self.claims]
        if not points:
            missing = NotTestable(refused or "no task of this study has finished")
            return [verdict_of(claim, missing) for claim in self.claims]
        verdicts = [judged(claim, points, self.axis, self.chance) for claim in self.claims]
        return [
            replace(verdict, reason=f"{verdict.reason}; {refused}")
            if refused and verdict.status == "not testable"
            else verdict
            for verdict in verdicts
        ]

    def power(self, points: Sequence[Point]) -> list[PowerRow]:
        """How wrong a prediction must be before each claim fails on the points of a study."""
        try:
            points = self.settled([point for point in points if not point.refused])
        except Exception:
            return []  # the verdicts hold the reason
        return [power_row(claim, points, self.axis, self.chance) for claim in self.claims if points]

    def curves(self, points: Sequence[Point], seconds: float | None = None) -> list[Curve]:
        """Points grouped along the axis, each group with its theory line.

        Lines that would take more CPU time than `seconds` together are interpolated between fewer
        predictions.
        """
        if self.axis is None:
            return []
        points = self._with_judged(self.settled(points))
        along = self._part("curve")
        if along is not None:  # a faster way, which makes a whole line at once
            return curves_of(points, self.axis, along, theory=self.predict)
        each = predict_each(self.predict, self.axis)
        return curves_of(points, self.axis, each, seconds, self.predict)

    def _with_judged(self, points: Sequence[Point]) -> list[Point]:
        """Points with the metrics that claims judge; as they are where claims cannot be read."""
        try:
            return with_judged(self.claims, points)
        except Exception:
            return list(points)  # the verdicts hold the error

    def figures(self, points: Sequence[Point]) -> list[Figure]:
        """Figures of a study: every panel for every curve; raises what a panel raises."""
        curves = self.curves(points)
        return [figure for panel in self.panels for figure in panel(curves)] if curves else []

    def drawn(self, points: Sequence[Point], seconds: float | None = None) -> Drawn:
        """Figures of a study, with an empty one for each that raised, and a line for each exception."""
        try:
            if type(self).figures is System.figures:
                curves = self.curves(points, seconds)
                return draw_panels(self.panels if curves else [], curves)
            return draw_panels([lambda _: self.figures(points)], [])
        except Exception as error:
            line = error_line(error)
            return Drawn([failed_figure("figures", line)], [Fault("panel", "figures", line)])


def refusals(points: Sequence[Point]) -> str:
    """Why points have no prediction, or none of some metrics; empty if all are predicted."""
    reasons = Counter(point.refusal for point in points if point.refusal)
    return "; ".join(
        f"no prediction: {reason}"
        if count == len(points)
        else f"no prediction at {count} of {len(points)} points: {reason}"
        for reason, count in reasons.most_common(3)
    )


def _caller() -> str:
    """Name of the module that makes a system."""
    return str(sys._getframe(2).f_globals.get("__name__", "__main__"))


def _look_up(module: str, name: str) -> System:
    found: System = getattr(import_module(module), name)
    return found
