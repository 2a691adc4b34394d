"""Systems of installed packages, loaded through entry points of small real distributions."""

from __future__ import annotations

import subprocess
import sys

import pytest

from solvable.errors import SolvableError, UnknownSystem
from solvable.frame import registry
from solvable.systems.base import System

SYSTEM = """
from typing import ClassVar

from solvable.systems.base import Parameters, Preset, System

TITLE = "not plain text"


class Base(System):
    version = "1"
    parameters = Parameters
    presets: ClassVar = {"quick": Preset("nothing", {})}

    def measure(self, parameters, rng):
        return {}

    def predict(self, parameters):
        return {}


class Plain(Base):
    name = "plain"
    title = "A plain system"


class Annotated(Base):
    name: ClassVar[str] = "annotated"
    title: ClassVar[str] = "A system with annotations"


class Computed(Base):
    name = "computed"
    title = TITLE


annotated: System = Annotated()
computed = Computed()
nothing = 3
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that makes a distribution with modules and entry points importable."""

    def install(package, entries, **modules):
        site = tmp_path / package
        site.mkdir()
        for name, source in modules.items():
            (site / f"{name}.py").write_text(source)
            monkeypatch.delitem(sys.modules, name, raising=False)
        info = site / f"{package}-2.5.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 2.5\n")
        lines = [f"{name} = {value}" for name, value in entries.items()]
        (info / "entry_points.txt").write_text("\n".join(["[solvable.systems]", *lines]))
        monkeypatch.syspath_prepend(str(site))
        return site

    yield install
    for name in ("reg_a", "reg_b", "reg_bad"):
        sys.modules.pop(name, None)


def listed():
    return {one.name: one for one in registry.available()}


def refusal(name):
    with pytest.raises(UnknownSystem) as caught:
        registry.load(name)
    message = str(caught.value)
    assert "\n" not in message
    assert isinstance(caught.value, SolvableError)
    return message


def test_our_own_systems_come_through_the_same_door():
    system = registry.load("sequential-recovery")
    assert isinstance(system, System)
    assert listed()["sequential-recovery"].title == system.title
    assert listed()["sequential-recovery"].package.startswith("solvable ")


def test_a_package_provides_classes_and_instances(install):
    entries = {
        "plain": "reg_a:Plain", "annotated": "reg_a:annotated", "computed": "reg_a:computed",
    }  # fmt: skip
    install("some-package", entries, reg_a=SYSTEM)
    found = listed()
    for name in entries:
        system = registry.load(name)
        assert isinstance(system, System)
        assert system.name == name
        assert found[name].package == "some-package 2.5"
    assert found["plain"].title == "A plain system"
    assert found["annotated"].title == "A system with annotations"
    # The listing parses source code: a title that is not a literal cannot be read.
    assert found["computed"].title == ""
    assert list(found) == sorted(found)


def test_listing_imports_no_system_and_no_numpy(install):
    site = install("some-package", {"loud": "reg_a:Loud"}, reg_a="raise SystemExit('imported')")
    code = (
        "import sys\n"
        f"sys.path.insert(0, {str(site)!r})\n"
        "from solvable.systems import registry\n"
        "names = [one.name for one in registry.available()]\n"
        "assert 'loud' in names and 'sequential-recovery' in names, names\n"
        "assert not {'reg_a', 'numpy', 'pydantic'} & set(sys.modules)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr


def test_unknown_names_are_answered_with_suggestions(install):
    install("some-package", {"plain": "reg_a:Plain"}, reg_a=SYSTEM)
    message = refusal("plane")
    assert message.startswith("system is 'plane'; allowed: ")
    assert "Did you mean 'plain'?" in message
    assert "sequential-recovery" in message
    assert "solvable.systems" in message
    assert "Did you mean" not in refusal("zzz")


@pytest.mark.parametrize(
    ("source", "entry", "cause"),
    [
        (None, "reg_bad:system", "ModuleNotFoundError: No module named 'reg_bad'"),
        ("import no_such_module_here", "reg_bad:system", "No module named 'no_such_module_here'"),
        ("def broken(:", "reg_bad:system", "SyntaxError"),
        ("raise RuntimeError('no licence\\nfound')", "reg_bad:system", "RuntimeError: no licence"),
        ("x = 1", "reg_bad:system", "AttributeError: module 'reg_bad' has no attribute 'system'"),
    ],
    ids=["missing module", "missing dependency", "syntax", "raises", "missing name"],
)
def test_systems_that_cannot_be_imported(install, source, entry, cause):
    install("bad-package", {"bad": entry}, **({} if source is None else {"reg_bad": source}))
    message = refusal("bad")
    assert "system 'bad' of package bad-package 2.5 cannot be imported" in message
    assert cause in message
    assert "bad" in listed()  # the listing shows all other systems
    if source is None or "(:" in source:
        assert listed()["bad"].title.startswith("(cannot be imported: ")


def test_a_module_in_a_missing_package(install):
    install("bad-package", {"bad": "no_such_package_here.module:system"})
    assert listed()["bad"].title.startswith("(cannot be imported: ")
    assert "No module named 'no_such_package_here'" in refusal("bad")


@pytest.mark.parametrize("attribute", ["nothing", "TITLE", "Parameters"])
def test_objects_that_are_no_systems(install, attribute):
    install("bad-package", {"bad": f"reg_a:{attribute}"}, reg_a=SYSTEM)
    message = refusal("bad")
    assert "entry point 'bad' of package bad-package 2.5 is " in message
    assert "allowed: an instance or subclass of solvable.systems.base.System" in message


def test_a_class_that_cannot_be_made(install):
    source = SYSTEM.replace("    def predict(self, parameters):\n        return {}\n", "")
    source = source[: source.index("annotated: System")]
    install("bad-package", {"plain": "reg_a:Plain"}, reg_a=source)
    message = refusal("plain")
    assert "package bad-package 2.5 cannot be imported" in message
    assert "a system lacks predict" in message


def test_names_of_system_and_entry_point_must_agree(install):
    install("bad-package", {"other": "reg_a:Plain"}, reg_a=SYSTEM)
    message = refusal("other")
    assert "entry point 'other'" in message
    assert "named 'plain'" in message


def test_two_packages_with_one_name_are_refused(install):
    install("first-package", {"plain": "reg_a:Plain"}, reg_a=SYSTEM)
    install("second-package", {"plain": "reg_b:Plain"}, reg_b=SYSTEM)
    message = refusal("plain")
    assert "first-package 2.5" in message
    assert "second-package 2.5" in message
    assert "Uninstall one" in message
    assert "plain" in listed()


def test_one_package_that_is_found_twice_is_no_conflict(install, tmp_path):
    """An editable install and its build folder both show the same entry point."""
    install("some-package", {"plain": "reg_a:Plain"}, reg_a=SYSTEM)
    install("some-package-copy", {"plain": "reg_a:Plain"})
    assert registry.load("plain").name == "plain"
