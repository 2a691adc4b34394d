"""What a system is made of: parameters, records, points, claims, verdicts and figures.

Everything here is plain data, so that a study can store it, a report can draw it and a user's own
system can be one file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict

from solvable.frame.claims import Claim
from solvable.frame.points import Metrics, Point
from solvable.plots.figure import Figure


class Parameters(BaseModel):
    """Base of the parameters of a system: frozen, unknown names rejected.

    Each field carries its range, its unit and one line of meaning; the help of the command line is
    made from them.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )


@dataclass(frozen=True)
class Reference:
    """A source that a system rests on.

    Parameters
    ----------
    key : str
        Key of the BibTeX entry.
    bibtex : str
        The whole entry.
    """

    key: str
    bibtex: str


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


class System(ABC):
    """Target + learner + theory + claims: one solvable model of the literature.

    A user's own system is a subclass in one file, an instance of which is named in the entry-point
    group ``solvable.systems``.

    Attributes
    ----------
    name : str
        Name on the command line.
    title : str
        One line for a reader.
    version : str
        Part of a task's identity: raise it when ``measure`` changes its numbers.
    references : tuple of Reference
        Sources.
    parameters : type
        Subclass of :class:`Parameters`.
    presets : mapping
        At least ``quick`` (under a minute on two cores).
    claims : tuple of Claim
        What is tested.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    version: ClassVar[str]
    references: ClassVar[tuple[Reference, ...]] = ()
    parameters: ClassVar[type[Parameters]]
    presets: ClassVar[Mapping[str, Preset]]
    claims: ClassVar[tuple[Claim, ...]] = ()

    @abstractmethod
    def measure(self, parameters: Any, rng: np.random.Generator) -> Metrics:
        """Run one replicate; the result depends on the parameters and the generator alone."""

    @abstractmethod
    def predict(self, parameters: Any) -> Metrics:
        """Predict the same metrics, and quantities that only theory knows."""

    def teacher(self, parameters: Any, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
        """Arrays that define the target of one replicate, stored with the study; none by default.

        The generator starts in the state in which :meth:`measure` receives it, so a system whose
        ``measure`` draws its target first returns here exactly the target that was measured.
        """
        return {}

    def figures(self, points: Sequence[Point]) -> list[Figure]:
        """Figures of a study; none unless a system defines them."""
        return []
