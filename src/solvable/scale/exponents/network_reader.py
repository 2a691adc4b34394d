"""Readers of network descriptions in files, mappings and command-line options."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from solvable.documents import read_document
from solvable.errors import InvalidData, InvalidParameter, unknown_choice
from solvable.paths import printable
from solvable.scale.exponents.activations import find_activation
from solvable.scale.exponents.linear_forms import LinearForm
from solvable.scale.exponents.network import (
    HIGHEST_DEGREE,
    Attention,
    Description,
    Layer,
    Network,
)
from solvable.scale.exponents.numerical_sizes import read_words


def read_network(source: str | Path | Mapping[str, Any]) -> Description:
    """Read a description from a TOML or JSON file, or from a mapping with the same structure."""
    if isinstance(source, Mapping):
        return _read(dict(source), source.get("title", "network"))
    path = Path(source)
    content = read_document(path)
    if not isinstance(content, dict):
        raise InvalidData(
            f"{path} holds a {type(content).__name__}; allowed: a table with layers and target."
        )
    return _read(content, content.get("title", path.stem))


def network_of_flags(
    layers: str, target: str, readout: str = "standard", kappa: str = "0"
) -> Description:
    """Build a network from command-line options.

    Parameters
    ----------
    layers : str
        ACTIVATION:WIDTH or ACTIVATION:WIDTH:PATCH of each hidden layer, separated by commas, with
        widths and patches as exponents of d: ``erf:1,relu:n2:1/2``.
    target : str
        ``heK`` or ``parityK`` with K from 1 to 9.
    readout : str
        "standard", "mean-field", or the exponent of chi.
    kappa : str
        Exponent of the ridge.

    Returns
    -------
    Network
        Description of the network, for :func:`scaling_of`.

    Examples
    --------
    >>> network_of_flags("erf:1,erf:n2", "he3").symbols
    ('n2',)
    """
    rows = []
    for word in layers.split(","):
        parts = [part.strip() for part in word.split(":")]
        if len(parts) not in (2, 3) or not all(parts):
            raise InvalidParameter(
                f"--layers has {word[:60]!r}; allowed: ACTIVATION:WIDTH or ACTIVATION:WIDTH:PATCH, as "
                "in erf:1,relu:n2:1/2."
            )
        rows.append(dict(zip(("act", "width", "patch"), parts, strict=False)))
    return read_network(
        {"layers": rows, "target": target_of(target), "readout": readout, "kappa": kappa}
    )


def target_of(word: str) -> dict[str, int]:
    """Read ``he3`` or ``parity2`` as a mapping."""
    match = re.fullmatch(r"(he|parity)([0-9]{1,3})", word.strip().lower())
    if match is None:
        raise InvalidParameter(
            f"the target is {word[:60]!r}; allowed: heK or parityK with K from 1 to 9, as in he3."
        )
    return {"hermite" if match[1] == "he" else "parity": int(match[2])}


def values_of(given: Mapping[str, Any]) -> dict[str, Fraction]:
    """Read the values of symbols as exact numbers."""
    found = {}
    for name, value in given.items():
        number = LinearForm.parse(value, name).number
        if number is None:
            raise InvalidParameter(
                f"{name} is {value!r:.80}; allowed: a rational number such as 3/2."
            )
        found[str(name)] = number
    return found


def read_assignments(text: str | None) -> dict[str, Fraction]:
    """Read ``n1=1,n2=3/2`` as exact numbers."""
    allowed = "each symbol once, as in n1=1,n2=3/2"
    return values_of(read_words(text, "value", allowed)) if text else {}


def read_ranges(text: str | None) -> dict[str, tuple[Fraction, Fraction]]:
    """Read ``n1=1:7,n2=0:4`` as ends of axes."""
    allowed = "each symbol once, as in n1=1:7,n2=1:7"
    words = read_words(text, "range", allowed) if text else {}
    ends: list[dict[str, str]] = [{}, {}]
    for name, value in words.items():
        low, _, high = (part.strip() for part in value.partition(":"))
        if not (low and high):
            raise InvalidParameter(f"'{name}={value:.60}' is not a range; allowed: {allowed}.")
        ends[0][name], ends[1][name] = low, high
    lows, highs = map(values_of, ends)
    return {name: (lows[name], highs[name]) for name in lows}


def _read(content: dict[str, Any], name: object) -> Description:
    title = _name(name, "title")
    kappa = LinearForm.parse(content.get("kappa", 0), "kappa")
    if "attention" in content:
        _only(content, {"attention", "kappa", "title", "target"}, "an attention block")
        block = content["attention"]
        if not isinstance(block, Mapping):
            raise InvalidParameter(
                f"attention is {block!r:.80}; allowed: a table with context, heads."
            )
        _only(block, {"heads", "context"}, "attention")
        if "target" in content and _target(content)[0] != 3:
            raise InvalidParameter(
                f"an attention block has target {content['target']!r:.80}; allowed: {{ hermite = 3 }}, "
                "the cubic form of three token features, or none."
            )
        sizes = {
            name: LinearForm.parse(block.get(name, 0), f"attention.{name}")
            for name in ("heads", "context")
        }
        return Attention(**sizes, kappa=kappa, title=title)
    _only(content, {"layers", "target", "readout", "kappa", "inputs", "title"}, "a network")
    rows = content.get("layers")
    if not isinstance(rows, Sequence) or isinstance(rows, str) or not rows:
        raise InvalidParameter(
            f"layers is {rows!r:.80}; allowed: a list such as [{{ width = '1', act = 'erf' }}]."
        )
    layers = tuple(_layer(row, number) for number, row in enumerate(rows, 1))
    readout, mean_field = _readout(content.get("readout", "standard"))
    degree, parity = _target(content)
    return Network(layers, degree, kappa, readout, _inputs(content), mean_field, title, parity)


def _layer(row: object, number: int) -> Layer:
    name = f"layer {number}"
    if not isinstance(row, Mapping):
        raise InvalidParameter(
            f"{name} is {row!r:.80}; allowed: a table such as {{ width = '1', act = 'erf' }}."
        )
    _only(row, {"width", "act", "patch", "pool"}, name)
    if missing := {"width", "act"} - row.keys():
        raise InvalidParameter(
            f"{name} has no {min(missing)}; allowed: {{ width = '1', act = 'erf' }}."
        )
    patch = None if row.get("patch") is None else LinearForm.parse(row["patch"], f"patch of {name}")
    pool = row.get("pool", False)
    if not isinstance(pool, bool):
        raise InvalidParameter(f"pool of {name} is {pool!r:.80}; allowed: true or false.")
    width = LinearForm.parse(row["width"], f"width of {name}")
    return Layer(width, find_activation(str(row["act"])), patch, pool)


def _target(content: Mapping[str, Any]) -> tuple[int, bool]:
    """Return the degree, and True if the target is a parity."""
    target = content.get("target")
    if isinstance(target, str):
        target = target_of(target)
    if not isinstance(target, Mapping) or len(target) != 1 or set(target) - {"hermite", "parity"}:
        raise InvalidParameter(
            f"target is {target!r:.80}; allowed: {{ hermite = 3 }} or {{ parity = 2 }}."
        )
    (degree,) = target.values()
    if isinstance(degree, bool) or not isinstance(degree, int):
        raise InvalidParameter(
            f"target degree is {degree!r:.80}; allowed: integers from 1 to {HIGHEST_DEGREE}."
        )
    return degree, "parity" in target


def _readout(value: object) -> tuple[LinearForm, bool]:
    if value == "standard":
        return LinearForm.of(0), False
    if value == "mean-field":
        return LinearForm.of(0), True
    if isinstance(value, str) and re.fullmatch(r"[a-z][a-z_-]+", value):
        raise InvalidParameter(
            unknown_choice("readout", value[:60], ["standard", "mean-field"])
            + " Or the exponent of chi."
        )
    return LinearForm.parse(value, "readout"), False


def _inputs(content: Mapping[str, Any]) -> LinearForm:
    given = content.get("inputs", {"linear": -1})
    if not isinstance(given, Mapping) or set(given) != {"linear"}:
        raise InvalidParameter(f"inputs is {given!r:.80}; allowed: {{ linear = '-1' }}.")
    form = LinearForm.parse(given["linear"], "inputs.linear")
    if form.number is not None and form.number > 0:
        raise InvalidParameter(
            f"inputs.linear is d^{form}; allowed: exponents up to 0, because the trace of the kernel is "
            "of order one."
        )
    return form


def _name(name: object, what: str) -> str:
    """Check a name: printable, on one line, at most 100 characters."""
    shown = " ".join(printable(str(name)).split())
    if not shown or len(shown) > 100:
        raise InvalidParameter(
            f"{what} is {shown[:60]!r}, with {len(shown)} printable characters; allowed: 1 to 100."
        )
    return shown


def _only(content: Mapping[str, Any], allowed: set[str], what: str) -> None:
    for name in content:
        if name not in allowed:
            raise InvalidParameter(
                unknown_choice(f"a key of {what}", str(name)[:60], sorted(allowed))
            )
