"""Parameters of a system: base class, sizes computed from ratios, and limits of measurements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, ClassVar, Self, overload

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from solvable.errors import InvalidParameter
from solvable.frame.parameter_errors import refusal_of


class Size:
    """An integer computed from a ratio, such as the number of samples.

    Parameters
    ----------
    ratio : str
        Name of the parameter.
    of : str or callable
        Names of the parameters that the ratio multiplies, or one function ``of(parameters)``.
    least : int
        Smallest allowed size; parameters with a smaller size are refused.
    floor : int
        Smaller sizes are raised to this one.
    name : str
        Plural name of the counted things; default the name of the attribute.

    Examples
    --------
    >>> class Example(Parameters):
    ...     dimension: int = 10
    ...     sample_ratio: float = 2.0
    ...     samples = Size("sample_ratio", "dimension", least=4)
    >>> Example(sample_ratio=0.8).samples
    8
    """

    def __init__(
        self,
        ratio: str,
        *of: str | Callable[[Any], float],
        least: int = 0,
        floor: int = 0,
        name: str = "",
    ) -> None:
        self.ratio, self.of, self.least, self.floor, self.name = ratio, of, least, floor, name

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name.removeprefix("n_").replace("_", " ")

    @overload
    def __get__(self, parameters: None, owner: type) -> Self: ...
    @overload
    def __get__(self, parameters: BaseModel, owner: type) -> int: ...
    def __get__(self, parameters: BaseModel | None, owner: type) -> Self | int:
        """Return the size at these parameters."""
        if parameters is None:
            return self
        return max(round(getattr(parameters, self.ratio) * self.unit(parameters)), self.floor)

    def unit(self, parameters: Any) -> float:
        """Size at a ratio of one."""
        return prod(of(parameters) if callable(of) else getattr(parameters, of) for of in self.of)

    def check(self, parameters: Any) -> None:
        """Refuse parameters at which the size is too small."""
        size, unit = self.__get__(parameters, type(parameters)), self.unit(parameters)
        if size >= self.least or not unit:  # the multiplied parameters have their own checks
            return
        start = f"{self.ratio} is {getattr(parameters, self.ratio):g}, "
        if self.least == 1:
            single = self.name.removesuffix("s")
            raise ValueError(f"{start}less than one {single}; allowed: at least {1 / unit:.2g}")
        raise ValueError(
            f"{start}so that there are {size} {self.name}; allowed: at least {self.least} "
            f"{self.name}, {self.ratio} of {self.least / unit:.2g} here"
        )


class Limit:
    """Largest allowed cost of a measurement; predictions have no limit.

    Parameters
    ----------
    cost : callable
        ``cost(parameters)``: a number such as the work of a replicate.
    most : float
        Largest allowed cost.
    words : str
        First part of the message, with names of parameters, and ``cost``, in braces.
    lower : str
        Parameters that the message advises to lower.
    unit : str
        Unit of the cost.

    Examples
    --------
    >>> limit = Limit(lambda p: p.dimension, 600, "dimension is {dimension}", "dimension")
    """

    def __init__(
        self, cost: Callable[[Any], float], most: float, words: str, lower: str, *, unit: str = ""
    ) -> None:
        self.cost, self.most, self.words, self.lower, self.unit = cost, most, words, lower, unit

    def refusal(self, parameters: Any) -> str:
        """Return why these parameters cannot be measured; empty if they can."""
        cost = self.cost(parameters)
        if cost <= self.most:
            return ""
        words = filled(self.words, parameters, cost=cost)
        return (
            f"{words}; allowed for a measurement: up to {self.most:g}{self.unit}. Lower "
            f"{self.lower}; `solvable theory` goes further."
        )


def memory(
    numbers: Callable[[Any], float], gigabytes: float, words: str, lower: str, *, each: int = 8
) -> Limit:
    """Limit the memory of the numbers that a measurement holds, with these bytes per number."""
    return Limit(
        lambda parameters: 1e-9 * each * numbers(parameters),
        gigabytes,
        f"{words} take {{cost:.1f}} GB",
        lower,
        unit=" GB",
    )


class Parameters(BaseModel):
    """Base of the parameters of a system: frozen, unknown names rejected.

    Each field has a range, a unit and a line of description, from which the command line makes its
    help. A :class:`Size` is an integer computed from a ratio; ``limits`` lists the limits of a
    measurement (:class:`Limit`, :func:`memory`). ``added`` names fields that came later than the first
    runs of a version: at their default they do not change the random numbers of a task.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        ignored_types=(Size,),
    )

    limits: ClassVar[Sequence[Limit]] = ()
    added: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            kind = f"the name of a parameter of {type(self).__name__}"
            raise refusal_of(error, type(self).model_fields, kind) from None

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        for owner in type(self).__mro__:
            for size in vars(owner).values():
                if isinstance(size, Size):
                    size.check(self)
        return self


def fields_of(setting: Any) -> dict[str, Any]:
    """Return the fields of a setting; `dict(setting)` would add its cached properties."""
    return {name: getattr(setting, name) for name in type(setting).model_fields}


def check_limits(parameters: Any) -> None:
    """Refuse parameters whose measurement would cost too much; predictions remain possible."""
    for limit in getattr(parameters, "limits", ()):
        if words := limit.refusal(parameters):
            raise InvalidParameter(words)


def filled(words: str, parameters: Any, **more: Any) -> str:
    """Format a text with attributes of the parameters in braces."""
    return words.format_map(_Attributes(parameters, more))


class _Attributes(Mapping[str, Any]):
    """Mapping from names to attributes of the parameters."""

    def __init__(self, parameters: Any, more: Mapping[str, Any]) -> None:
        self.parameters, self.more = parameters, more

    def __getitem__(self, name: str) -> Any:
        return self.more[name] if name in self.more else getattr(self.parameters, name)

    def __iter__(self) -> Any:
        return iter(self.more)

    def __len__(self) -> int:
        return len(self.more)
