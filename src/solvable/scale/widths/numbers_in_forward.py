"""Numbers that a forward pass multiplies by, scale of attention scores, and sums that no layer does."""

from __future__ import annotations

import math
from collections.abc import Sequence

from solvable.scale.forward_pass import VIEWS, Operation

# Sums and products by entries, and norms: they have one number a unit, and are no layers.
BY_ENTRIES = (
    "add", "sub", "mul", "div", "true_divide", "multiply", "addcmul", "lerp", "where", "maximum",
    "minimum", "cat", "concat", "stack", "prelu", "layer_norm", "rms_norm", "batch_norm", "group_norm",
    "instance_norm", "__add__", "__radd__", "__iadd__", "__sub__", "__rsub__", "__mul__", "__rmul__",
    "__imul__", "__truediv__",
)  # fmt: skip
_SCORES = ("matmul", "__matmul__", "bmm", "baddbmm", "einsum")
_ENDS = ("softmax", "log_softmax", "sigmoid", "exp")
_SUMS = (
    "sum", "norm", "vector_norm", "normalize", "cosine_similarity", "pairwise_distance", "cdist",
    "logsumexp", "prod",
)  # fmt: skip


def multipliers(operations: Sequence[Operation]) -> dict[str, float]:
    """Find the number by which the forward pass multiplies each weight, before or after its layer.

    A number on the outputs of a layer belongs to this layer; a number on anything else belongs to the
    layers that read it. Numbers on attention scores belong to no weight.
    """
    outputs, inputs = [1.0] * len(operations), [1.0] * len(operations)  # numbers of each layer
    for place, operation in enumerate(operations):
        if operation.number is None:
            continue
        if any(_is_product(operations[later]) for later in _reached(operations, place)):
            continue
        before = _before(operations, place)
        if before is not None:
            outputs[before] *= operation.number
        else:
            for layer in _reached(operations, place):
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


def _origin(operation: Operation) -> int | None:
    return operation.data[0].origin if operation.data else None


def _before(operations: Sequence[Operation], place: int) -> int | None:
    """Layer whose outputs an operation reads, through views; None without."""
    origin = _origin(operations[place])
    while origin is not None:
        operation = operations[origin]
        if any(operand.parameter for operand in operation.operands):
            return None if operation.function in BY_ENTRIES else origin
        if not _passes(operation):
            return None
        origin = _origin(operation)
    return None


def _reached(operations: Sequence[Operation], place: int) -> list[int]:
    """Return the operations that read a result through views and numbers."""
    passed, reached = {place}, []
    for later in range(place + 1, len(operations)):
        operation = operations[later]
        if passed & {operand.origin for operand in operation.operands}:
            reached.append(later)
            if _passes(operation):
                passed.add(later)
    return reached


def _is_product(operation: Operation) -> bool:
    """Return True for a product of two tensors that depend on the inputs."""
    return operation.function in _SCORES and len(operation.data) == 2


def _scores_of(operations: Sequence[Operation], place: int) -> tuple[bool, float]:
    """Follow a product by entries; return True if it ends as attention, and the numbers on its way.

    Masks, soft caps and temperatures change no sum over the width, so that any function that keeps the
    shape is followed.
    """
    passed, number, ended = {place}, 1.0, False
    for later in range(place + 1, len(operations)):
        operation = operations[later]
        read = [operand for operand in operation.operands if operand.origin in passed]
        if not read:
            continue
        layer = operation.function not in BY_ENTRIES and any(
            operand.parameter and len(operand.shape) > 1 for operand in operation.operands
        )
        if operation.function in _ENDS:
            ended = True
        elif operation.function in VIEWS or not (
            layer or _is_product(operation) or operation.shape != read[0].shape
        ):
            passed.add(later)
            number *= operation.number or 1.0
    return ended, number


def feeds_attention(operations: Sequence[Operation], place: int) -> bool:
    """Return True if the result of a layer is read as queries, keys or values, before any other layer."""
    passed, weights = (
        {place},
        set[int](),
    )  # weights: attention weights, which are results of a softmax
    for later in range(place + 1, len(operations)):
        operation = operations[later]
        origins = {operand.origin for operand in operation.operands}
        layer = any(operand.parameter and len(operand.shape) > 1 for operand in operation.operands)
        if operation.function == "softmax" or (weights & origins and _passes(operation)):
            weights.add(later)
        elif passed & origins and operation.function == "scaled_dot_product_attention":
            return True
        elif passed & origins and _is_product(operation):
            if weights & origins or _scores_of(operations, later)[0]:
                return True
        elif passed & origins and not layer and operation.function not in _ENDS:
            passed.add(later)
    return False


def score_scale(operations: Sequence[Operation]) -> tuple[float, float] | None:
    """Return the size of an attention head and the number that scales its scores; None without."""
    for place, operation in enumerate(operations):
        if operation.function == "multi_head_attention_forward":
            size = operation.operands[0].shape[-1] / operation.options[4]
            return float(size), float(size**-0.5)
        if operation.function == "scaled_dot_product_attention":
            size = operation.operands[0].shape[-1]
            return float(size), float(operation.options.get("scale") or size**-0.5)
        if _is_product(operation):
            ended, number = _scores_of(operations, place)
            if not ended:
                continue
            if any(_is_unit(operations, operand.origin) for operand in operation.data):
                return 1.0, 1.0  # cosines do not grow
            for before, scaled in enumerate(operations[:place]):
                if scaled.number is not None and place in _reached(operations, before):
                    number *= scaled.number
            return float(_contracted(operation)), number
    return None


def _is_unit(operations: Sequence[Operation], origin: int | None) -> bool:
    """Return True for vectors of length one."""
    while origin is not None:
        operation = operations[origin]
        if operation.function == "normalize":
            return True
        if not _passes(operation):
            return False
        origin = _origin(operation)
    return False


def _contracted(operation: Operation) -> int:
    """Return the number of terms in each entry of a product."""
    equation = next((v for v in operation.options.values() if isinstance(v, str)), "")
    if not equation:
        return operation.data[0].shape[-1]
    left, _, right = equation.replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    for term, operand in zip(left.split(","), operation.operands, strict=False):
        # letters after an ellipsis belong to the last axes
        first, dots, last = term.partition("...")
        named = dict(zip(reversed(last if dots else first), reversed(operand.shape), strict=False))
        sizes |= named | (dict(zip(first, operand.shape, strict=False)) if dots else {})
    return math.prod(size for letter, size in sizes.items() if letter not in right)


def sums_over_width(
    operations: Sequence[Operation], base_operations: Sequence[Operation]
) -> list[str]:
    """Describe the operations that sum over an axis that grows, without a layer or as no attention."""
    found = []
    for place, (ours, theirs) in enumerate(zip(operations, base_operations, strict=False)):
        if ours.function != theirs.function or not ours.data or not theirs.data:
            continue
        where = ours.module or "the module itself"
        if _is_product(ours) and _contracted(ours) != _contracted(theirs):
            if not _scores_of(operations, place)[0]:
                found.append(f"{where} multiplies two activations ({ours.function}) and sums")
        elif ours.function in _SUMS:
            grown = [
                math.prod(a.shape) / math.prod(b.shape)
                for a, b in ((ours.data[0], theirs.data[0]), (ours, theirs))
            ]
            unit = ours.function == "normalize" and not math.isclose(grown[0], 1)
            if not math.isclose(*grown) or unit:
                found.append(f"{where} takes a {ours.function}")
    return list(dict.fromkeys(found))
