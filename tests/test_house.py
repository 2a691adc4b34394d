"""Structure of the source: no circular or delayed imports, short files, few imports in a folder."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

import solvable

SOURCE = Path(solvable.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
MODULES = {
    ".".join(("solvable", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in FILES
}
LIGHT = ("cli", "verbs.py", "data_verbs.py", "__init__.py", "__main__.py", "frame/registry.py")
"""Parts with delayed imports, because help and the list of systems load no NumPy."""


@cache
def imported(module: str) -> frozenset[str]:
    """Return the modules of the library that a module imports anywhere in its text."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module or "")
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    # An imported submodule does not count as an import of its package.
    parts = {name.rpartition(".")[0] for name in found & MODULES.keys()}
    return frozenset((found & MODULES.keys()) - {module, *parts, "solvable"})


def test_there_is_no_import_circle():
    # Kahn's algorithm: remove modules whose imports are all removed.
    waiting = {module: imported(module) for module in MODULES}
    while ready := {module for module, needs in waiting.items() if not needs & waiting.keys()}:
        for module in ready:
            del waiting[module]
    assert waiting == {}


def delayed_imports(path: Path) -> list[str]:
    """Return the functions of a file that import modules of the library."""
    text = path.read_text("utf-8")
    if not re.search(r"[\s;:]from solvable", text.replace("\nfrom solvable", "")):
        return []  # most files; parsing takes long
    return [
        function.name
        for function in ast.walk(ast.parse(text))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("solvable")
    ]


def test_own_modules_are_imported_at_the_top():
    places = {path.relative_to(SOURCE): path for path in FILES}
    found = {
        str(place): delayed_imports(path)
        for place, path in places.items()
        if not {place.parts[0], place.as_posix()} & set(LIGHT)
    }
    assert len(found) > 300
    assert {place: functions for place, functions in found.items() if functions} == {}


def test_files_are_short():
    lengths = {str(path): len(path.read_text("utf-8").splitlines()) for path in FILES}
    assert {path: length for path, length in lengths.items() if length > 700} == {}


def test_source_has_comments():
    comments = lines = 0
    for path in FILES:
        # Without docstrings; a comment after code counts as none.
        text = re.sub('""".*?"""', "", path.read_text("utf-8"), flags=re.DOTALL)
        written = [line.strip() for line in text.splitlines() if line.strip()]
        lines += len(written)
        comments += sum(line.startswith("#") for line in written)
    assert comments >= 0.02 * lines


def test_families_have_the_same_file_names():
    # A family of several systems has a folder for each, in addition to shared modules.
    for family in {path.parent for path in (SOURCE / "models").rglob("system.py")}:
        names = {path.stem for path in family.glob("*.py")}
        assert {"parameters", "measure", "predict", "claims", "figures", "system"} <= names, family


PARTS = {"scale": (12, 23), "models/sequential": (16, 27)}
"""Large folders: largest number of modules and subfolders, and of imports between them."""


@pytest.mark.parametrize("folder", PARTS)
def test_parts_of_a_folder_import_few_others(folder):
    package = f"solvable.{folder.replace('/', '.')}"

    def part(module: str) -> str:
        return module.removeprefix(f"{package}.").partition(".")[0]

    inside = [module for module in MODULES if module.startswith(f"{package}.")]
    arrows = {
        (part(module), part(other))
        for module in inside
        for other in imported(module)
        if other.startswith(f"{package}.") and part(other) != part(module)
    }
    assert len({part(module) for module in inside}) <= PARTS[folder][0]
    assert len(arrows) <= PARTS[folder][1]


TESTS = Path(__file__).parent
QUANTITY = re.compile(
    "(?:^|_)(?:accuracy|amplitude|chance|correlation|density|distance|edge|eigenvalue|energy|error|"
    "exponent|gap|height|loss|mass|mean|momentum|mse|noise|norm|overlap|power|probability|radius|rate|"
    "ratio|risk|scale|score|sensitivity|share|slope|spread|strength|threshold|value|variance|weight)"
    "s?(?:_|$)"
)
"""Pattern of names of results computed in floating point, even if their values are integers."""

EXACT = {
    "study": "stored numbers are read bit for bit",
    "plots": "drawn numbers are given numbers",
    "data": "a table has the numbers of its file",
    "scale": "exponents are fractions",
    "test_links.py": "breakpoints are the numbers of the formula",
    "frame/test_panels.py": "markers are drawn at given numbers",
    "data/test_weights.py": "formats of eight bits have exact values",
    "models/sequential/estimator/test_selection.py": "a selection returns numbers given to it",
}
"""Folders and files with exact numbers, which are not computed in floating point, and the reason."""


def literal(node: ast.expr, kind: type) -> bool:
    """Return True if an expression is, or contains, a non-zero number of this type."""
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return any(literal(entry, kind) for entry in node.elts)
    if isinstance(node, ast.Dict):
        return any(literal(entry, kind) for entry in node.values)
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    # Zeros are allowed: rounding leaves no exact zero, so a compared zero is set by construction.
    return isinstance(node, ast.Constant) and type(node.value) is kind and node.value != 0


def quantity(node: ast.expr) -> bool:
    """Return True if the last name or index key of an expression names a computed quantity."""
    name = ""
    while not name:
        match node:
            case ast.Call(func=inner):
                node = inner
            case ast.Attribute(attr=name) | ast.Name(id=name):
                pass
            case ast.Subscript(slice=ast.Constant(value=str(name))):
                pass
            case ast.Subscript(value=inner):
                node = inner
            case _:
                return False
    return bool(QUANTITY.search(name.lower().replace("-", "_")))


def exact_comparisons(text: str) -> list[str]:
    """Return assertions that compare computed floats with numbers exactly."""
    found = []
    for statement in ast.walk(ast.parse(text)):
        if isinstance(statement, ast.Assert):
            for node in ast.walk(statement.test):
                if isinstance(node, ast.Compare):
                    sides = [node.left, *node.comparators]
                    pairs = zip(node.ops, sides, sides[1:], strict=False)
                    found += [
                        ast.unparse(node)
                        for sign, left, right in pairs
                        if isinstance(sign, ast.Eq | ast.NotEq)
                        for number, other in ((left, right), (right, left))
                        if (literal(number, float) and not isinstance(other, ast.Constant))
                        or (literal(number, int) and quantity(other))
                    ]
        elif isinstance(statement, ast.Call) and statement.args:
            name = ast.unparse(statement.func).rpartition(".")[2]
            if name in ("assert_array_equal", "array_equal") and any(
                literal(argument, float) for argument in statement.args
            ):
                found.append(ast.unparse(statement))
    return found


def test_files_that_take_long_are_there():
    names = (TESTS / "long_files.txt").read_text("utf-8").split()
    assert [name for name in names if not (TESTS / name).is_file()] == []
    assert len(names) == len(set(names))


def test_computed_floats_are_not_compared_exactly():
    """Rounding differs between machines: use `pytest.approx`, `assert_allclose` or a line in EXACT."""
    places = {path.relative_to(TESTS).as_posix(): path for path in sorted(TESTS.rglob("test_*.py"))}
    found = {
        place: exact_comparisons(path.read_text("utf-8"))
        for place, path in places.items()
        if not any(place == name or place.startswith(f"{name}/") for name in EXACT)
    }
    assert len(found) > 200
    assert {place: lines for place, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    [
        'assert found["matrix_error"] == 1',
        "assert threshold(3.0) == 0.5",
        "assert curve.errors.tolist() == [0.5, 0.25]",
        "assert 1 == model.scale[0]",
        'assert answer == {"a": 0.0, "b": 1.0}',
        "np.testing.assert_array_equal(curve.errors, [0.5, 0.3])",
    ],
)
def test_exact_comparisons_of_computed_floats_are_found(line):
    assert len(exact_comparisons(line)) == 1


@pytest.mark.parametrize(
    "line",
    [
        'assert found["matrix_error"] == pytest.approx(1)',
        "assert len(errors) == 3",
        "assert table.n_rows == 3",
        "assert (overlap == 0).all()",
        "assert name == 'error'",
        "np.testing.assert_array_equal(again, first)",
    ],
)
def test_counts_words_and_zeros_are_compared_exactly(line):
    assert exact_comparisons(line) == []


def test_no_room_exceeds_its_budget():
    budgets = tomllib.loads((TESTS / "budgets.toml").read_text("utf-8"))
    lines = dict.fromkeys(budgets, 0)
    for path in FILES:
        place = path.relative_to(SOURCE).parent.as_posix()
        room = "/".join(place.split("/")[: 2 if place.startswith("models/") else 1])
        room = "files outside of rooms" if room in (".", "models") else room
        assert room in budgets, f"{room} has no budget in tests/budgets.toml"
        lines[room] += len(path.read_text("utf-8").splitlines())
    over = {room: count for room, count in lines.items() if count > budgets[room]}
    assert over == {}, f"more lines than tests/budgets.toml allows: {over}"
    # A budget that is not used any more is lowered, so that it cannot be filled again unseen.
    assert {room for room, count in lines.items() if count < 0.9 * budgets[room] - 100} == set()
