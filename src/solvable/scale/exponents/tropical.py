r"""Exact minimisation of the largest exponent of several monomials (a tropical program).

A monomial is :math:`d^{c + a\cdot v}` with free exponents v (numbers of neurons, strengths, gains). For
large d a sum of monomials is its largest one, so that an energy is
:math:`\min_v\max_i (c_i + a_i\cdot v)` subject to :math:`g_j + b_j\cdot v\le 0`. The vertices of the dual
do not depend on the sizes of the network, so that the minimum is a maximum of linear forms in the sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np

from solvable.errors import InvalidParameter
from solvable.scale.exponents.linear_forms import LinearForm

Vector = tuple[Fraction, ...]
Matrix = tuple[Vector, ...]

LARGEST_ENUMERATION = 400_000
"""Largest number of supports (choices of non-zero dual weights) enumerated for one program."""


@dataclass(frozen=True, order=True)
class Monomial:
    """Monomial whose exponent of d is a linear form plus the free exponents times their powers."""

    constant: LinearForm
    powers: tuple[
        tuple[str, Fraction], ...
    ] = ()  # each free exponent's name and power, ascending by name
    meaning: str = ""  # description of the cost or of the bound
    box: bool = False  # True: bound on a number of neurons or a gain

    @classmethod
    def of(
        cls,
        constant: LinearForm | int,
        powers: Mapping[str, int | Fraction] | None = None,
        meaning: str = "",
        *,
        box: bool = False,
    ) -> Monomial:
        """Build a monomial from a mapping that gives each free exponent its power."""
        held = sorted((name, Fraction(value)) for name, value in (powers or {}).items() if value)
        form = constant if isinstance(constant, LinearForm) else LinearForm.of(constant)
        return cls(form, tuple(held), meaning, box)

    def times(self, other: Monomial, power: int = 1) -> Monomial:
        """Multiply by a power of another monomial; the fields ``meaning`` and ``box`` are kept."""
        powers = dict(self.powers)
        for name, value in other.powers:
            powers[name] = powers.get(name, Fraction(0)) + power * value
        constant = self.constant + other.constant * power
        return Monomial.of(constant, powers, self.meaning, box=self.box)


@dataclass(frozen=True)
class Program:
    """Program: minimise the largest term over free exponents, with every constraint at most zero."""

    terms: tuple[Monomial, ...]
    constraints: tuple[Monomial, ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the free exponents, ascending."""
        return tuple(
            sorted({name for term in (*self.terms, *self.constraints) for name, _ in term.powers})
        )

    def unboxed(self) -> Program:
        """Drop the bounds on numbers of neurons and on gains."""
        return Program(self.terms, tuple(held for held in self.constraints if not held.box))

    def at(self, point: Mapping[str, Fraction]) -> Program:
        """Substitute values for symbols."""

        def valued(term: Monomial) -> Monomial:
            return Monomial(term.constant.at(point), term.powers, term.meaning, term.box)

        return Program(tuple(map(valued, self.terms)), tuple(map(valued, self.constraints)))


@dataclass(frozen=True)
class Minimum:
    """Minimum of a program at given sizes, and the minimisers."""

    value: Fraction  # exponent of the energy
    # range of each free exponent over all minimisers; an open end is None
    intervals: dict[str, tuple[Fraction | None, Fraction | None]]
    bounds: tuple[str, ...]  # constraints that the energy depends on


def closed_form(program: Program) -> tuple[LinearForm, ...]:
    """Compute the minimum, as a maximum of linear forms in the sizes."""
    # E = max over vertices (y, z) of sum_i y_i c_i + sum_j z_j g_j, with y, z >= 0, sum y = 1 and
    # A^T y + G^T z = 0   (scale 8)
    forms = []
    for vertex in _vertices(program):
        total = LinearForm.of(0)
        for term, weight in zip((*program.terms, *program.constraints), vertex, strict=True):
            if weight:
                total = total + term.constant * weight
        forms.append(total)
    if not forms:
        raise InvalidParameter("the energy has no minimum: all terms can become arbitrarily small.")
    return tuple(sorted(set(forms)))


def minimise(
    program: Program, point: Mapping[str, Fraction] | None = None, *, faces: bool = True
) -> Minimum:
    """Solve the program at given sizes, at which the constraints do not contradict each other."""
    held = program.at(point or {})
    columns = (*held.terms, *held.constraints)
    constants = [term.constant.constant for term in columns]
    vertices = _vertices(program)
    if not vertices:
        closed_form(program)  # raises
    # Among vertices of equal value, the vertex with the fewest active bounds is reported.
    value, _, weights = max(
        (
            sum((w * c for w, c in zip(vertex, constants, strict=True) if w), Fraction(0)),
            -sum(bool(w) and term.box for w, term in zip(vertex, columns, strict=True)),
            vertex,
        )
        for vertex in vertices
    )
    duals = zip(held.constraints, weights[len(held.terms) :], strict=True)
    bounds = tuple(bound.meaning for bound, weight in duals if weight)
    if not faces:
        return Minimum(value, {}, bounds)
    # The minimisers v satisfy a_i v <= E - c_i and b_j v <= -g_j.
    slack = [
        (value if i < len(held.terms) else Fraction(0)) - constant
        for i, constant in enumerate(constants)
    ]
    intervals = {name: _interval(program, name, slack) for name in program.variables}
    return Minimum(value, intervals, bounds)


def _interval(
    program: Program, name: str, slack: Sequence[Fraction]
) -> tuple[Fraction | None, Fraction | None]:
    """Compute the least and the largest value of a free exponent v_k under A v <= slack."""
    ends: list[Fraction | None] = []
    for sign in (-1, 1):
        # max sign * v_k = min over w >= 0 with A^T w = sign * e_k of w . slack
        duals = _basic_solutions(_matrix(program), _unit(program, name, sign))
        bounds = [
            sum((w * s for w, s in zip(dual, slack, strict=True) if w), Fraction(0))
            for dual in duals
        ]
        ends.append(sign * min(bounds) if bounds else None)
    return ends[0], ends[1]


def _unit(program: Program, name: str, sign: int) -> Vector:
    return tuple(Fraction(sign * (other == name)) for other in program.variables)


def _matrix(program: Program) -> Matrix:
    """Build the matrix of powers: one row per free exponent, one column per term or constraint."""
    columns = [dict(term.powers) for term in (*program.terms, *program.constraints)]
    return tuple(
        tuple(column.get(name, Fraction(0)) for column in columns) for name in program.variables
    )


def _vertices(program: Program) -> tuple[Vector, ...]:
    """Return the vertices (y, z) of the dual polyhedron."""
    mass = (Fraction(1),) * len(program.terms) + (Fraction(0),) * len(program.constraints)
    zero = (Fraction(0),) * len(program.variables)
    return _basic_solutions((*_matrix(program), mass), (*zero, Fraction(1)))


@lru_cache(maxsize=20_000)
def _basic_solutions(matrix: Matrix, right: Vector) -> tuple[Vector, ...]:
    """Return all basic solutions w >= 0 of ``matrix @ w == right``, exactly."""
    rows = _independent(matrix, right)
    if rows is None:
        return ()
    held, target = rows
    columns = len(matrix[0]) if matrix else 0
    rank = len(held)
    if rank == 0:
        return ((Fraction(0),) * columns,)
    if comb(columns, rank) > LARGEST_ENUMERATION:
        raise InvalidParameter(
            f"a program of {rank} equations in {columns} weights has {comb(columns, rank):,} "
            f"supports; allowed: {LARGEST_ENUMERATION:,}. Take fewer layers or fewer free sizes."
        )
    # All supports are solved in floating point; non-negative solutions are converted to rationals and
    # checked exactly.
    supports = np.array(list(combinations(range(columns), rank)))
    values = np.array([[float(entry) for entry in row] for row in held])
    systems = values[:, supports].transpose(1, 0, 2)
    # The entries are small rationals, so that a determinant is either zero or far from zero.
    regular = np.abs(np.linalg.det(systems)) > 1e-7
    supports, systems = supports[regular], systems[regular]
    goal = np.broadcast_to(np.array([float(value) for value in target]), (len(supports), rank))
    solved = (
        np.linalg.solve(systems, goal[..., None])[..., 0] if len(supports) else np.empty((0, rank))
    )
    found = set()
    for support, weights in zip(supports, solved, strict=True):
        if (weights < -1e-9).any():
            continue
        exact = [Fraction(float(weight)).limit_denominator(100_000) for weight in weights]
        dense = [Fraction(0)] * columns
        for place, weight in zip(support, exact, strict=True):
            dense[place] = weight
        if min(exact) < 0 or any(
            sum((row[place] * dense[place] for place in support), Fraction(0)) != value
            for row, value in zip(held, target, strict=True)
        ):
            raise AssertionError(f"a vertex is not a small rational: {weights}")
        found.add(tuple(dense))
    return tuple(sorted(found))


def _independent(matrix: Matrix, right: Vector) -> tuple[list[Vector], list[Fraction]] | None:
    """Return the linearly independent equations; None if equations contradict each other."""
    kept: list[Vector] = []
    target: list[Fraction] = []
    reduced: list[list[Fraction]] = []
    for row, value in zip(matrix, right, strict=True):
        rest = [*row, value]
        for held in reduced:
            lead = next(i for i, entry in enumerate(held) if entry)
            if rest[lead]:
                factor = rest[lead] / held[lead]
                rest = [a - factor * b for a, b in zip(rest, held, strict=True)]
        if any(rest[:-1]):
            reduced.append(rest)
            kept.append(row)
            target.append(value)
        elif rest[-1]:
            return None
    return kept, target
