"""Answer to one request: exponent, phases, prefactors, and the samples that a real model needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from solvable.errors import InvalidParameter
from solvable.scale.exponents.linear_forms import about_all
from solvable.scale.exponents.network import Description, Network
from solvable.scale.exponents.sample_exponent import Scaling, scaling_of
from solvable.scale.networks_of_data.calculator_networks import RealSizes
from solvable.scale.phases.diagram import PhaseDiagram
from solvable.scale.phases.exponent_ranges import Ends, phases_of
from solvable.scale.prefactors.enough_rows import DEGREES, Overview, judged, overview_of
from solvable.scale.prefactors.samples_at_sizes import Numbers, numbers_of


@dataclass(frozen=True)
class Answer:
    """Everything that ``solvable scale`` found for one request."""

    found: Scaling
    phases: PhaseDiagram | None = None  # phase diagram over the symbols of --phase
    sums: Numbers | None = None  # energies with prefactors at given sizes
    real: RealSizes | None = None  # sizes of a real model, and measured spectrum of the inputs
    classes: int | None = None  # number of classes of a classifier, None for regression
    overview: Overview | None = None  # samples that a real model needs, by degree of the target
    have: float | None = None  # number of rows that is judged

    @property
    def enough(self) -> str:
        """Judgement of the given number of rows at the sizes of the network; empty without."""
        if self.have is None or self.sums is None:
            return ""
        return judged(self.have / self.sums.winner.samples)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the network and about its prefactors."""
        return self.found.warnings + (() if self.sums is None else self.sums.warnings)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of ``solvable scale --json``."""
        kind: dict[str, Any] = {} if self.classes is None else {"classes": self.classes}
        kind |= {"enough": self.enough} if self.enough else {}
        more = {"numbers": self.sums, "phases": self.phases, "overview": self.overview}
        held = {
            **self.found.to_dict(),
            **kind,
            **{name: row.to_dict() for name, row in more.items() if row is not None},
        }
        real = {} if self.real is None else self.real.to_dict()
        return (about_all(held) if self.found.is_rounded else held) | real


def answer_of(
    network: Description,
    *,
    at: Mapping[str, Fraction] | None = None,
    box: Ends | None = None,
    phase: Sequence[str] | None = None,
    sizes: Mapping[str, float] | None = None,
    real: RealSizes | None = None,
    classes: int | None = None,
    have: float | None = None,
) -> Answer:
    """Answer a request about one network."""
    _check_classes(classes, real)
    if have is not None and not 0 < have < float("inf"):
        raise InvalidParameter(f"--have is {have:g}; allowed: a number above 0.")
    found = scaling_of(network, at)
    phases: PhaseDiagram | None = None
    if phase is not None:
        if len(phase) not in (1, 2):
            raise InvalidParameter(
                f"--phase has {len(phase)} words ({', '.join(phase)}); allowed: one or two symbols, as "
                "in --phase n1 n2. Write the file before --phase."
            )
        phases = phases_of(network, *phase, box=box, at=at)
    elif box:
        raise InvalidParameter(
            f"--range of {', '.join(box)} is given without --phase; name the axes, as in "
            "--phase n1 n2."
        )
    sums, overview = _sums(found.network, sizes, real, classes, have)
    if have is not None and sums is None and overview is None:
        raise InvalidParameter(
            "--have judges a number of rows, and exponents alone have no number; allowed: with "
            "--numbers, or with a real model."
        )
    return Answer(found, phases, sums, real, classes, overview, have)


def _check_classes(classes: int | None, real: RealSizes | None) -> None:
    """Refuse a number of classes that is too small, or that the answer cannot use."""
    if classes is None:
        return
    if classes < 2:
        raise InvalidParameter(f"--classes is {classes}; allowed: an integer of at least 2.")
    if real is not None and real.model is not None:
        raise InvalidParameter(
            f"--classes {classes} is given with a real model; allowed: a network in exponents, with or "
            "without --numbers, because the factor 1 / log C has no power of d."
        )


def _sums(
    network: Description,
    sizes: Mapping[str, float] | None,
    real: RealSizes | None,
    classes: int | None,
    have: float | None,
) -> tuple[Numbers | None, Overview | None]:
    """Compute prefactors at the given sizes or at a real model's sizes, and a real model's overview."""
    if real is None or real.model is None or not isinstance(network, Network):
        return (None if sizes is None else numbers_of(network, sizes, classes=classes)), None
    if network.symbols:
        raise InvalidParameter(
            f"{', '.join(network.symbols)} has no value in a real model; allowed: numbers."
        )
    own = real.sizes()
    # Given sizes that equal the sizes in the file are accepted.
    given = {name: value for name, value in (sizes or {}).items() if own.get(name) != value}
    sums = None
    if not (wrong := real.underived(network)):
        # Prefactors were not requested: if they cannot be computed, only exponents are given.
        with suppress(*([] if given else [InvalidParameter])):
            sums = numbers_of(real.white(network), own | given)
    elif unused := [name for name in given if name != "kappa"]:
        raise InvalidParameter(
            f"--numbers has {unused[0]}, and no prefactors are derived for {wrong}; allowed: kappa, "
            "which needs no prefactors. Change other sizes in the file of the model."
        )
    if sums is not None and not real.assumed:
        return sums, None
    kappa = sums.sizes["kappa"] if sums else given.get("kappa")
    degrees = DEGREES if real.assumed else (network.degree,)
    return sums, overview_of(
        network, real.model.dimension, underived=wrong, degrees=degrees, sizes=own, kappa=kappa,
        sums=sums, have=have,
    )  # fmt: skip
