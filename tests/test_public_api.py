"""The public interface: importable, documented, fast to import, and never running code from files."""

from __future__ import annotations

import ast
import dataclasses
import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from numpydoc.validate import validate

import solvable

SOURCE = Path(solvable.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

PACKAGES = [
    "solvable",
    *(f"solvable.{one.name}" for one in pkgutil.iter_modules(solvable.__path__) if one.ispkg),
]

WHOLE_MODULES = [
    "solvable.arrays",
    "solvable.errors",
    "solvable.hermite",
    "solvable.systems.base",
    "solvable.frame.registry",
]
"""Modules without ``__all__``: every public name defined in them is public."""


def surface():
    """Return the public functions and classes, by the dotted names of their definitions."""
    found = {}
    for package in PACKAGES:
        # A name that cannot be imported fails only in its own test below.
        with suppress(ImportError):
            module = importlib.import_module(package)
            for name in getattr(module, "__all__", ()):
                with suppress(ImportError, AttributeError):
                    value = getattr(module, name)
                    found[id(value)] = value
    for name in WHOLE_MODULES:
        module = importlib.import_module(name)
        for public, value in vars(module).items():
            if not public.startswith("_") and getattr(value, "__module__", None) == name:
                found[id(value)] = value
    documented = [one for one in found.values() if inspect.isfunction(one) or inspect.isclass(one)]
    return sorted(f"{one.__module__}.{one.__qualname__}" for one in documented)


def named(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def complaints(path, codes):
    return [text for code, text in validate(path)["errors"] if code in codes]


SURFACE = surface()
FUNCTIONS = [path for path in SURFACE if inspect.isfunction(named(path))]
CLASSES = [path for path in SURFACE if inspect.isclass(named(path))]

MISSING, UNDOCUMENTED, UNKNOWN, RETURNS, YIELDS = "GL08", "PR01", "PR02", "RT01", "YD01"


def test_the_surface_is_not_empty():
    assert len(FUNCTIONS) > 20
    assert len(CLASSES) > 30


@pytest.mark.parametrize("package", PACKAGES)
def test_all_names_resolve_and_are_sorted(package):
    module = importlib.import_module(package)
    names = getattr(module, "__all__", [])
    assert len(set(names)) == len(names)
    for name in names:
        assert getattr(module, name) is not None
    # An imported submodule would replace an exported name of the same spelling.
    parts = {one.name for one in pkgutil.iter_modules(getattr(module, "__path__", []))}
    if package != "solvable":
        assert not parts & set(names)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = module.no_such_name


VERBS = {
    "compare", "run", "theory_of", "load", "learn_features", "predict_rows", "diagnose_weights",
    "diagnose_checkpoints",     "forecast_curve", "activations_of", "scale_network", "train_retriever",
    "index_documents", "search_documents", "explore_system", "probe",
}  # fmt: skip


def test_parts_are_listed_and_load_on_first_use():
    parts = {one.name for one in pkgutil.iter_modules(solvable.__path__)}
    assert not parts & VERBS
    assert set(solvable.__all__) - {"__version__"} - VERBS <= parts
    assert set(solvable.__all__) <= set(dir(solvable))
    assert solvable.study is importlib.import_module("solvable.study")


@pytest.mark.parametrize("path", FUNCTIONS)
def test_functions_document_every_argument_and_result(path):
    assert complaints(path, {MISSING, UNDOCUMENTED, UNKNOWN, RETURNS, YIELDS}) == []


@pytest.mark.parametrize("path", CLASSES)
def test_classes_document_their_arguments(path):
    # Abstract bases, protocols, pydantic models and plain errors document no arguments.
    own = "__init__" in vars(named(path)) and not getattr(named(path), "_is_protocol", False)
    model = hasattr(named(path), "model_fields")
    # A class that only the library creates may list its attributes instead.
    result = "Attributes\n" in (named(path).__doc__ or "")
    codes = {MISSING, UNKNOWN}
    if own and not model and not result:
        listed = not dataclasses.is_dataclass(named(path)) or "Parameters\n" in named(path).__doc__
        codes |= {UNDOCUMENTED} if listed else set()
        assert listed or fields_without_line(named(path)) == []
    assert complaints(path, codes) == []


def fields_without_line(cls):
    """Return the fields without a docstring; one docstring may describe the fields before it as well."""
    body = ast.parse(inspect.cleandoc("\n" + inspect.getsource(cls))).body[0].body
    undescribed = []
    for node in body[1:]:
        if isinstance(node, ast.AnnAssign):
            undescribed.append(node.target.id)
        elif isinstance(node, ast.Expr):
            undescribed = []
        else:
            break
    return [name for name in undescribed if name != "_"]


@pytest.mark.parametrize("path", CLASSES)
def test_methods_are_documented_and_name_only_arguments_that_exist(path):
    cls = named(path)
    for name, member in vars(cls).items():
        kinds = (property, classmethod, staticmethod)
        if name.startswith("_") or not (inspect.isfunction(member) or isinstance(member, kinds)):
            continue
        if not inspect.getdoc(getattr(cls, name)):
            pytest.fail(f"{path}.{name} has no docstring")
        text = getattr(member, "__doc__", None) or ""
        # A method may have a one-line docstring, but a list of parameters must be complete.
        codes = {UNDOCUMENTED, UNKNOWN} if "Parameters\n" in text else set()
        assert complaints(f"{path}.{name}", codes) == [], name


def test_import_is_light():
    heavy = ("numpy", "scipy", "pydantic", "sklearn", "matplotlib", "rich", "cyclopts")
    code = f"import sys, solvable; sys.exit(repr(set({heavy!r}) & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert answer.stderr.decode().strip() == "set()"


FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}


def dangers(path):
    """Return the expressions of a file by which data that are read could run code."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        bad = False
        if isinstance(node, ast.Import):
            names = {one.name.split(".")[0] for one in node.names}
            # Jobs for Dask workers are pickled, because Dask sends only pickles; a page and the process
            # that it starts send each other pickles through a pipe of their own.
            transport = {"pickle"} if path.name in ("execute.py", "worker.py") else set()
            bad = bool((names - transport) & FORBIDDEN_MODULES)
        elif isinstance(node, ast.ImportFrom):
            # The names of exceptions only contain the word; they run nothing.
            names = {one.name for one in node.names} - {"PicklingError", "UnpicklingError"}
            bad = bool(names) and (node.module or "").split(".")[0] in FORBIDDEN_MODULES
        elif isinstance(node, ast.Call):
            allowed = {one.arg: one.value for one in node.keywords}.get("allow_pickle")
            bad = isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS
            bad |= allowed is not None and getattr(allowed, "value", None) is not False
            bad |= allowed is None and ast.unparse(node.func) in {"np.load", "numpy.load"}
            safe = {one.arg: one.value for one in node.keywords}.get("weights_only")
            bad |= (
                ast.unparse(node.func) == "torch.load" and getattr(safe, "value", None) is not True
            )
        if bad:
            found.append(ast.unparse(node))
    return found


def test_nothing_that_is_read_can_run_code():
    found = {str(path.relative_to(SOURCE)): dangers(path) for path in FILES}
    assert {path: texts for path, texts in found.items() if texts} == {}


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "torch.load(path, mmap=True)",
        "torch.load(path, weights_only=False)",
        "from pickle import loads",
        "import os, marshal",
        "eval(text)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=flag)",
        "read(path, allow_pickle=1)",
    ],
)
def test_code_that_could_run_is_found(text, tmp_path):
    path = tmp_path / "file.py"
    path.write_text(text)
    assert dangers(path) == [text]


def test_annotations_are_lazy():
    texts = {str(path.relative_to(SOURCE)): path.read_text("utf-8") for path in FILES}
    eager = [
        path
        for path, text in texts.items()
        if "from __future__ import annotations" not in text
        and any(isinstance(node, ast.FunctionDef) for node in ast.walk(ast.parse(text)))
    ]
    assert eager == []


ROOT = Path(__file__).parents[1]


def pages():
    """Return the text of all pages without the generated list of the API."""
    paths = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    paths += [*(ROOT / "examples").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    generated = {ROOT / "docs" / "api.md"}
    return "\n".join(path.read_text("utf-8") for path in paths if path not in generated)


FACES = [package for package in PACKAGES if package != "solvable"]


def test_every_exported_name_is_on_a_page():
    words = set(re.findall(r"\w+", pages()))
    exported = {
        (package, name)
        for package in FACES
        for name in getattr(importlib.import_module(package), "__all__", ())
    }
    assert {pair for pair in exported if pair[1] not in words} == set()


@pytest.mark.parametrize("package", FACES)
def test_a_surface_fits_a_screen(package):
    assert len(getattr(importlib.import_module(package), "__all__", ())) <= 40


def test_examples_of_the_page_on_python_print_what_it_shows():
    page = ROOT / "docs" / "python.md"
    outcome = doctest.testfile(str(page), False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.attempted > 20
    assert outcome.failed == 0
