"""Role of each parameter in width: input, hidden, output, vector or fixed."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from solvable.errors import InvalidData
from solvable.scale.forward_pass import Operand, Operation
from solvable.scale.widths.numbers_in_forward import BY_ENTRIES, feeds_attention, multipliers

Axes = tuple[tuple[int, ...], tuple[int, ...] | None]  # None: all axes are outputs

Role = Literal["input", "hidden", "output", "vector", "fixed", "tied", "shared"]

ROLES: Mapping[str, str] = {
    "input": "from inputs of fixed size to the width",
    "hidden": "from the width to the width",
    "output": "from the width to outputs of fixed size",
    "vector": "one number a unit: biases, gains, positions",
    "fixed": "does not grow with the width",
    "tied": "used as input and as output",
    "shared": "from the width to keys or values of fixed size, which many heads read",
}

# Axes of a weight: those that it sums over (inputs of the layer), and those of its outputs.
_LINEAR, _TRANSPOSED = ((1,), (0,)), ((0,), (1,))
_AXES: Mapping[str, Mapping[int | str, tuple[tuple[int, ...], tuple[int, ...]]]] = {
    "linear": {1: _LINEAR, "weight": _LINEAR},
    **{f"conv{n}d": {1: _LINEAR, "weight": _LINEAR} for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": {1: _TRANSPOSED, "weight": _TRANSPOSED} for n in (1, 2, 3)},
    "embedding": {1: _TRANSPOSED, "weight": _TRANSPOSED},
    "embedding_bag": {1: _TRANSPOSED, "weight": _TRANSPOSED},
    "bilinear": {2: ((1, 2), (0,)), "weight": ((1, 2), (0,))},
}
_MATRIX_PRODUCTS = ("matmul", "__matmul__", "mm", "bmm", "addmm", "baddbmm", "__rmatmul__")
_VECTOR_PRODUCTS = ("mv", "dot", "vdot", "inner", *_MATRIX_PRODUCTS)
_PACKED = ("lstm", "gru", "rnn_tanh", "rnn_relu", "multi_head_attention_forward")


@dataclass(frozen=True)
class WidthParameter:
    """One parameter of a module at two widths."""

    name: str
    role: Role
    shape: tuple[int, ...]
    base_shape: tuple[int, ...]
    fan_in: float  # inputs of a unit, over that of the base
    fan_out: float  # outputs of the weight, over that of the base
    multiplier: float  # number that the forward pass multiplies it by, over that of the base
    start: float  # standard deviation of its entries, over that of the base; 1 for constants
    start_error: float = 0.0  # standard error of its logarithm
    start_usual: float = 1.0  # ratio of torch's own layers, fan_in^(-1/2) of the layer
    depth: float = 1.0  # number of blocks like its own, over that of the base

    @property
    def width(self) -> float:
        """Ratio of widths that the parameter sees."""
        return max(self.fan_in, self.fan_out)


def parameter_roles(
    module: Any,
    base: Any,
    operations: Sequence[Operation],
    base_operations: Sequence[Operation],
    lengths: Container[str] = (),
) -> tuple[WidthParameter, ...]:
    """Find the role of each parameter, from its use in the forward pass and the axes that grow.

    Lengths of weight_norm are vectors.

    Raises
    ------
    InvalidData
        If the modules differ in more than sizes, or the use of a parameter is not known.
    """
    ours, theirs = dict(module.named_parameters()), dict(base.named_parameters())
    places = _places_in_base([*ours], [*theirs])
    odd = sorted({place for place, _ in places.values()} ^ set(theirs))
    if odd:
        raise InvalidData(
            f"the modules at two widths have other parameters ({', '.join(odd[:3])}); allowed: one "
            "architecture, of which only widths and numbers of blocks differ."
        )
    if len(operations) != len(base_operations) and len(ours) == len(theirs):
        raise InvalidData(
            f"the forward passes at two widths have {len(operations)} and {len(base_operations)} "
            "operations; allowed: the same operations at each width."
        )
    now, before = multipliers(operations), multipliers(base_operations)
    found = []
    for name, parameter in ours.items():
        place, depth = places[name]
        shape, base_shape = tuple(parameter.shape), tuple(theirs[place].shape)
        role, fan_in, fan_out = _role(name, shape, base_shape, operations, name in lengths)
        multiplier = now.get(name, 1.0) / before.get(place, 1.0)
        (new, new_error), (old, old_error) = _spread(parameter), _spread(theirs[place])
        usual = _fan_in_of_layer(name, operations, ours) / _fan_in_of_layer(
            place, base_operations, theirs
        )
        found.append(
            WidthParameter(
                name, role, shape, base_shape, fan_in, fan_out, multiplier, new / old,
                math.hypot(new_error, old_error), usual**-0.5, depth,
            )
        )  # fmt: skip
    return tuple(found)


def _fan_in_of_layer(name: str, operations: Sequence[Operation], parameters: Any) -> float:
    """Return the inputs of a unit in the layer of a weight or bias; 1 for other parameters."""
    for operation in operations:
        if operation.function not in (*_AXES, *_MATRIX_PRODUCTS, *_PACKED, "einsum"):
            continue
        if any(operand.parameter == name for operand in operation.operands):
            for operand in operation.operands:
                if operand.parameter and len(operand.shape) > 1:
                    inputs, _ = _use(operation, operand) or ((), ())
                    if operation.function == "bilinear":
                        inputs = inputs[:1]  # torch draws its entries so
                    shape = parameters[operand.parameter].shape
                    return float(math.prod(shape[axis] for axis in inputs))
    return 1.0


def _places_in_base(names: Sequence[str], base: Sequence[str]) -> dict[str, tuple[str, float]]:
    """Return the parameter of the base that corresponds to each one, and the ratio of numbers of blocks.

    Blocks are numbered in names, as in a ModuleList; block i of m is block floor(i k / m) of k.
    """
    counts, before = _numbered(names), _numbered(base)
    found = {}
    for name in names:
        parts, ratio = name.split("."), 1.0
        for place, part in enumerate(parts):
            path = ".".join(parts[:place])
            many, few = counts.get(path, 0), before.get(path, 0)
            if part.isdigit() and few and many != few:
                parts[place] = str(int(part) * few // many)
                ratio *= many / few
        found[name] = ".".join(parts), ratio
    return found


def _numbered(names: Sequence[str]) -> dict[str, int]:
    """Return how many numbered children each module has."""
    found: dict[str, int] = {}
    for name in names:
        parts = name.split(".")
        for place, part in enumerate(parts):
            if part.isdigit():
                path = ".".join(parts[:place])
                found[path] = max(found.get(path, 0), int(part) + 1)
    return found


def _spread(parameter: Any) -> tuple[float, float]:
    """Standard deviation of the entries and standard error of its logarithm; 1 and 0 if all are equal."""
    values = parameter.detach().double().flatten()
    if len(values) < 2 or not float(values.std()):
        return 1.0, 0.0
    spread = float(values.std())
    kurtosis = float((((values - values.mean()) / spread) ** 4).mean())
    return spread, math.sqrt(max(kurtosis - 1, 0.2) / (4 * len(values)))


def _role(
    name: str,
    shape: Sequence[int],
    base_shape: Sequence[int],
    operations: Sequence[Operation],
    length: bool,
) -> tuple[Role, float, float]:
    """Return the role of a parameter, and by how much its inputs and its outputs grow."""
    if len(shape) != len(base_shape):
        raise InvalidData(f"{name} has {len(shape)} axes, and {len(base_shape)} at the base width.")
    growth = [new / old for new, old in zip(shape, base_shape, strict=True)]
    grown = {axis for axis, ratio in enumerate(growth) if not math.isclose(ratio, 1)}
    if not grown:
        return "fixed", 1.0, 1.0
    if length:
        return "vector", 1.0, math.prod(growth)
    places = [place for place, row in enumerate(operations) if row.reads(name)]
    uses = [
        _use(operation, operand)
        for operation in operations
        for operand in operation.operands
        if operand.parameter == name
    ]
    if not uses:
        raise InvalidData(
            f"{name} is not used in the forward pass on the example inputs; allowed: inputs that "
            "reach all parameters. Let the function return (module, inputs)."
        )
    roles: dict[Role, tuple[float, float]] = {}
    for use in uses:
        if use is None and len(grown) == 2 and len({round(growth[axis], 9) for axis in grown}) == 1:
            ratio = growth[min(grown)]  # either way the weight is hidden
            roles["hidden"] = (ratio, ratio)
            continue
        if use is None:
            raise InvalidData(
                f"{name}, of shape {tuple(shape)}, is reshaped before its use, so that its inputs and "
                "outputs are not known; allowed: transpositions."
            )
        inputs, outputs = use
        fan_in = math.prod(growth[axis] for axis in inputs)
        fan_out = math.prod(growth if outputs is None else [growth[axis] for axis in outputs])
        if not inputs:
            roles["vector"] = (1.0, fan_out)
        elif fan_in != 1 and fan_out != 1:
            roles["hidden"] = (fan_in, fan_out)
        else:
            roles["output" if fan_in != 1 else "input"] = (fan_in, fan_out)
    if len(roles) == 1:
        ((role, (fan_in, fan_out)),) = roles.items()
        if role == "output" and all(feeds_attention(operations, place) for place in places):
            role = "shared"
        return role, fan_in, fan_out
    if set(roles) <= {"input", "vector", "output"} and "output" in roles:
        return "tied", roles["output"][0], roles["output"][0]
    raise InvalidData(f"{name} is used as {' and as '.join(roles)}; allowed: one role.")


def _use(operation: Operation, operand: Operand) -> Axes | None:
    """Return the axes of a parameter that an operation sums over, and those of its outputs.

    None if the parameter was reshaped, so that its axes are not known.
    """
    axes = operand.axes
    if operation.function == "einsum":
        return _einsum_axes(operation, operand)
    if len(operand.shape) < 2:
        summed = operation.function in _VECTOR_PRODUCTS
        return ((0,), ()) if summed else ((), axes)
    if operation.slot_of_data(operand):
        return (), axes  # a learned array that is read as an input
    if operation.function in _PACKED:
        return _LINEAR
    if operation.function in _MATRIX_PRODUCTS:
        slots = [other.slot for other in operation.operands if len(other.shape) > 1]
        second = operand.slot == max(slots, key=str)
        if operation.function == "__rmatmul__":
            second = not second
        if axes is None:
            return None
        return ((axes[-2],), (axes[-1],)) if second else ((axes[-1],), (axes[-2],))
    known = _AXES.get(operation.function, {}).get(operand.slot)
    if known is not None:
        if axes is None:
            return None
        return tuple(axes[a] for a in known[0]), tuple(axes[a] for a in known[1])
    if operation.function not in BY_ENTRIES:
        raise InvalidData(
            f"{operand.parameter} is used by {operation.function}, which is not known; allowed: linear "
            "layers, convolutions, embeddings, matrix products, sums and products by entries."
        )
    return (), axes  # one number a unit


def _einsum_axes(operation: Operation, operand: Operand) -> Axes | None:
    """Axes by the letters of an equation: those that leave are inputs, those that are new are outputs."""
    equation = next((v for v in operation.options.values() if isinstance(v, str)), "")
    left, _, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    places = [place for place, other in enumerate(operation.operands) if other is operand]
    if (
        operand.axes is None
        or len(terms) != len(operation.operands)
        or not right
        or "." in equation
    ):
        return None
    own = terms[places[0]]
    others = "".join(term for place, term in enumerate(terms) if place != places[0])
    inputs = tuple(operand.axes[i] for i, letter in enumerate(own) if letter not in right)
    outputs = tuple(operand.axes[i] for i, letter in enumerate(own) if letter not in others)
    return inputs, outputs
