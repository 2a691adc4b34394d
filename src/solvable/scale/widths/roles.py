"""Role of each parameter in width: input, hidden, output, vector or fixed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from solvable.errors import InvalidData
from solvable.scale.forward_pass import VIEWS, Operand, Operation

Role = Literal["input", "hidden", "output", "vector", "fixed", "tied"]

ROLES: Mapping[str, str] = {
    "input": "from inputs of fixed size to the width",
    "hidden": "from the width to the width",
    "output": "from the width to outputs of fixed size",
    "vector": "one number a unit: biases, gains, positions",
    "fixed": "does not grow with the width",
    "tied": "used as input and as output",
}

# Axes of a weight: those that it sums over (inputs of the layer), and those of its outputs.
_LINEAR, _TRANSPOSED = ((1,), (0,)), ((0,), (1,))
_AXES: Mapping[str, Mapping[int | str, tuple[tuple[int, ...], tuple[int, ...]]]] = {
    "linear": {1: _LINEAR, "weight": _LINEAR},
    **{f"conv{n}d": {1: _LINEAR, "weight": _LINEAR} for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": {1: _TRANSPOSED, "weight": _TRANSPOSED} for n in (1, 2, 3)},
    "embedding": {1: _TRANSPOSED, "weight": _TRANSPOSED},
    "embedding_bag": {1: _TRANSPOSED, "weight": _TRANSPOSED},
}
_MATRIX_PRODUCTS = ("matmul", "__matmul__", "mm", "bmm", "addmm", "baddbmm", "__rmatmul__")
_VECTOR_PRODUCTS = ("mv", "dot", "vdot", "inner", *_MATRIX_PRODUCTS)
_BY_ENTRIES = (
    "add", "sub", "mul", "div", "true_divide", "multiply", "addcmul", "lerp", "where", "maximum",
    "minimum", "cat", "concat", "stack", "prelu", "layer_norm", "rms_norm", "batch_norm", "group_norm",
    "instance_norm", "__add__", "__radd__", "__iadd__", "__sub__", "__rsub__", "__mul__", "__rmul__",
    "__imul__", "__truediv__",
)  # fmt: skip
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
    depth: float = 1.0  # number of blocks like its own, over that of the base

    @property
    def width(self) -> float:
        """Ratio of widths that the parameter sees."""
        return max(self.fan_in, self.fan_out)


def parameter_roles(
    module: Any, base: Any, operations: Sequence[Operation], base_operations: Sequence[Operation]
) -> tuple[WidthParameter, ...]:
    """Find the role of each parameter, from its use in the forward pass and the axes that grow.

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
        role, fan_in, fan_out = _role(name, shape, base_shape, operations)
        multiplier = now.get(name, 1.0) / before.get(place, 1.0)
        start = _spread(parameter) / _spread(theirs[place])
        found.append(
            WidthParameter(name, role, shape, base_shape, fan_in, fan_out, multiplier, start, depth)
        )
    return tuple(found)


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


def _spread(parameter: Any) -> float:
    """Standard deviation of the entries, 1 if all are equal."""
    values = parameter.detach().double().flatten()
    if len(values) < 2:
        return 1.0
    return float(values.std()) or 1.0


def _role(
    name: str, shape: Sequence[int], base_shape: Sequence[int], operations: Sequence[Operation]
) -> tuple[Role, float, float]:
    """Return the role of a parameter, and by how much its inputs and its outputs grow."""
    if len(shape) != len(base_shape):
        raise InvalidData(f"{name} has {len(shape)} axes, and {len(base_shape)} at the base width.")
    growth = [new / old for new, old in zip(shape, base_shape, strict=True)]
    grown = {axis for axis, ratio in enumerate(growth) if not math.isclose(ratio, 1)}
    if not grown:
        return "fixed", 1.0, 1.0
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
        fan_out = math.prod(growth[axis] for axis in outputs)
        if not inputs:
            roles["vector"] = (1.0, fan_out)
        elif fan_in != 1 and fan_out != 1:
            roles["hidden"] = (fan_in, fan_out)
        else:
            roles["output" if fan_in != 1 else "input"] = (fan_in, fan_out)
    if len(roles) == 1:
        ((role, (fan_in, fan_out)),) = roles.items()
        return role, fan_in, fan_out
    if set(roles) <= {"input", "vector", "output"} and "output" in roles:
        return "tied", roles["output"][0], roles["output"][0]
    raise InvalidData(f"{name} is used as {' and as '.join(roles)}; allowed: one role.")


def _use(operation: Operation, operand: Operand) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the axes of a parameter that an operation sums over, and those of its outputs.

    None if the parameter was reshaped, so that its axes are not known.
    """
    axes = operand.axes
    if operation.function == "einsum":
        return _einsum_axes(operation, operand)
    if len(operand.shape) < 2:
        summed = operation.function in _VECTOR_PRODUCTS
        return (_all(axes, operand), ()) if summed else ((), _all(axes, operand))
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
    if operation.function not in _BY_ENTRIES:
        raise InvalidData(
            f"{operand.parameter} is used by {operation.function}, which is not known; allowed: linear "
            "layers, convolutions, embeddings, matrix products, sums and products by entries."
        )
    return (), _all(axes, operand)  # one number a unit


def _all(axes: tuple[int, ...] | None, operand: Operand) -> tuple[int, ...]:
    return axes if axes is not None else tuple(range(len(operand.shape)))


def _einsum_axes(
    operation: Operation, operand: Operand
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
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


def multipliers(operations: Sequence[Operation]) -> dict[str, float]:
    """Find the number by which the forward pass multiplies each weight, before or after its layer.

    A number on the outputs of a layer belongs to this layer; a number on anything else belongs to the
    layers that read it. Numbers on attention scores belong to no weight.
    """
    outputs, inputs = [1.0] * len(operations), [1.0] * len(operations)  # numbers of each layer
    for place, operation in enumerate(operations):
        if operation.number is None:
            continue
        scored = [operations[later] for later in _reached(operations, place, masks=True)[0]]
        if any(later.function in _SCORES and len(later.data) == 2 for later in scored):
            continue
        before = _before(operations, place)
        if before is not None:
            outputs[before] *= operation.number
        else:
            for layer in _reached(operations, place)[0]:
                inputs[layer] *= operation.number
    found: dict[str, float] = {}
    for operation, number, of_inputs in zip(operations, outputs, inputs, strict=True):
        for operand in operation.operands:
            # a bias is not multiplied by a number on the inputs; used again, a weight has one number
            own = operand.factor * number * (of_inputs if len(operand.shape) > 1 else 1.0)
            if operand.parameter:
                found.setdefault(operand.parameter, own)
    return found


def _passes(operation: Operation) -> bool:
    """Return True for views, and for products with numbers."""
    return operation.function in VIEWS or operation.number is not None


def _before(operations: Sequence[Operation], place: int) -> int | None:
    """Layer whose outputs an operation reads, through views; None without."""
    origin = operations[place].operands[0].origin
    while origin is not None:
        operation = operations[origin]
        if any(operand.parameter for operand in operation.operands):
            return None if operation.function in _BY_ENTRIES else origin
        if not _passes(operation):
            return None
        origin = operation.operands[0].origin
    return None


_SCORES = ("matmul", "__matmul__", "bmm", "baddbmm", "einsum")


def score_scale(operations: Sequence[Operation]) -> tuple[float, float] | None:
    """Return the size of an attention head and the number that scales its scores; None without."""
    for place, operation in enumerate(operations):
        if operation.function == "multi_head_attention_forward":
            size = operation.operands[0].shape[-1] / operation.options[4]
            return float(size), float(size**-0.5)
        if operation.function == "scaled_dot_product_attention":
            size = operation.operands[0].shape[-1]
            return float(size), float(operation.options.get("scale") or size**-0.5)
        if operation.function in _SCORES and len(operation.data) == 2:
            reached, number = _reached(operations, place, masks=True)
            if not any(operations[later].function == "softmax" for later in reached):
                continue
            for before, scaled in enumerate(operations[:place]):
                if (
                    scaled.number is not None
                    and place in _reached(operations, before, masks=True)[0]
                ):
                    number *= scaled.number
            return float(_contracted(operation)), number
    return None


def _contracted(operation: Operation) -> int:
    """Return the number of terms in each entry of a product."""
    equation = next((v for v in operation.options.values() if isinstance(v, str)), "")
    if not equation:
        return operation.operands[0].shape[-1]
    left, _, right = equation.replace(" ", "").partition("->")
    sizes = {
        letter: size
        for term, operand in zip(left.split(","), operation.operands, strict=True)
        for letter, size in zip(term, operand.shape, strict=True)
    }
    return math.prod(size for letter, size in sizes.items() if letter not in right)


def _reached(
    operations: Sequence[Operation], place: int, *, masks: bool = False
) -> tuple[list[int], float]:
    """Return the operations that read a result through views and numbers; and these numbers.

    With ``masks`` also through sums and fillings, as of attention scores.
    """
    passed, reached, number = {place}, [], 1.0
    for later in range(place + 1, len(operations)):
        operation = operations[later]
        if not passed & {operand.origin for operand in operation.operands}:
            continue
        reached.append(later)
        masked = operation.function in ("add", "__add__", "__iadd__", "masked_fill")
        if _passes(operation) or (masks and masked):
            passed.add(later)
            number *= operation.number or 1.0
    return reached, number
