"""Every claim leads to an equation, theorem or figure, and every derivation to its code and check."""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from solvable.answers.derivations import derivation_pages, numbered_equations
from solvable.answers.mathematics import mathml, unknown_commands
from solvable.frame.references import source_parts
from solvable.frame.registry import available, load

ROOT = Path(__file__).parent.parent
PAGES = derivation_pages()
BACKING = re.compile(
    r"^Source: (?P<source>.+?)\. Code: (?P<code>`[\w.]+`(?:, `[\w.]+`)*)\. "
    r"Check: (?P<check>`tests/[\w/.:]+`(?:, `tests/[\w/.:]+`)*)(?:[,;] .+)?$",
    re.MULTILINE | re.DOTALL,
)


@pytest.mark.parametrize("name", [listing.name for listing in available()])
def test_every_claim_names_a_place_that_exists(name):
    system = load(name)
    faults = []
    for claim in system.claims:
        parts = list(source_parts(claim.source))
        faults += [f"{claim.name}: no source"] if not parts else []
        for part in parts:
            if not part.precise:
                faults.append(f"{claim.name}: {part.text!r} names no equation, theorem or figure")
            labels = numbered_equations(PAGES.get(part.page, ""))
            for number in part.equations:
                if f"{part.page}-{number}" not in labels:
                    faults.append(f"{claim.name}: {part.text!r} does not exist")
    assert not faults


@pytest.mark.parametrize("page", PAGES)
def test_equations_are_numbered_in_order(page):
    labels = numbered_equations(PAGES[page])
    assert labels == [f"{page}-{number}" for number in range(1, len(labels) + 1)]
    assert labels


@pytest.mark.parametrize("page", PAGES)
def test_every_equation_has_source_code_and_check(page):
    pieces = re.split(r"^\$\$ \([a-z-]+-(\d+)\)$", PAGES[page], flags=re.MULTILINE)
    faults = []
    for number, text in zip(pieces[1::2], pieces[2::2], strict=True):
        backing = BACKING.search(text)
        if backing is None:
            faults.append(
                f"({number}) is not followed by a line 'Source: ... Code: ... Check: ...'"
            )
            continue
        for name in re.findall(r"`([\w.]+)`", backing["code"]):
            faults += [f"({number}): {name} cannot be imported"] if not importable(name) else []
        for place in re.findall(r"`([\w/.:]+)`", backing["check"]):
            path, _, test = place.partition("::")
            faults += (
                [f"({number}): there is no {place}"] if test not in names_of_tests(path) else []
            )
    assert not faults


@pytest.mark.parametrize("page", PAGES)
def test_code_names_every_equation(page):
    numbers = {label.rpartition("-")[2] for label in numbered_equations(PAGES[page])}
    named = re.compile(rf"\({page} (\d+(?:, \d+)*)")
    found = {
        number for text in sources() for m in named.finditer(text) for number in m[1].split(", ")
    }
    assert numbers - found == set(), "these equations stand next to no line of code"
    assert found - numbers == set(), "code names equations that the page lacks"


@pytest.mark.parametrize("page", PAGES)
def test_formulas_can_be_shown_in_a_report(page):
    formulas = re.findall(r"\$\$\n(.*?)\n\$\$|\$([^$]+)\$", PAGES[page], re.DOTALL)
    unknown = [unknown_commands(mathml(block or inline, "block")) for block, inline in formulas]
    assert not [commands for commands in unknown if commands]


def importable(name: str) -> bool:
    """Return True if a dotted name is a function, class, method or constant of the package."""
    module, attributes = name, []
    while module:
        try:
            target = import_module(module)
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            attributes.insert(0, last)
            continue
        for attribute in attributes:
            if attribute in getattr(target, "__annotations__", {}):
                return attribute == attributes[-1]  # a field of a dataclass
            if not hasattr(target, attribute):
                return False
            target = getattr(target, attribute)
        return bool(attributes)
    return False


@cache
def names_of_tests(path: str) -> set[str]:
    """Names of the tests in a file."""
    file = ROOT / path
    if not file.is_file():
        return set()
    tree = ast.parse(file.read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@cache
def sources() -> tuple[str, ...]:
    """Texts of all modules of the package."""
    return tuple(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
