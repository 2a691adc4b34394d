"""Finding systems of installed packages, and saying what is wrong with one."""

import sys
from importlib.metadata import EntryPoint

import pytest

from solvable.errors import UnknownSystem
from solvable.systems import registry
from solvable.systems.base import System

MODULE = '''
from solvable.systems.base import Parameters, System

class Own(System):
    """Own."""

    name = "own"
    title = "My own system"
    version = "1"
    parameters = Parameters
    presets = {}

    def measure(self, parameters, rng):
        return {}

    def predict(self, parameters):
        return {}

system = Own()
number = 3
'''


@pytest.fixture
def entries(monkeypatch, tmp_path):
    (tmp_path / "own_module.py").write_text(MODULE)
    (tmp_path / "broken_module.py").write_text("import no_such_package")
    monkeypatch.syspath_prepend(tmp_path)

    def install(*pairs):
        points = [EntryPoint(name, value, registry.GROUP) for name, value in pairs]
        monkeypatch.setattr(registry, "entry_points", lambda group: points)

    yield install
    for name in ("own_module", "broken_module"):
        sys.modules.pop(name, None)


def test_ours_are_listed_with_their_titles():
    listed = {one.name: one for one in registry.available()}
    assert {"sequential-recovery", "compositional-target"} <= set(listed)
    for name in ("sequential-recovery", "compositional-target"):
        assert listed[name].title == registry.load(name).title
        assert listed[name].package.startswith("solvable ")


@pytest.mark.parametrize("value", ["own_module:system", "own_module:Own"])
def test_an_instance_or_a_class(entries, value):
    entries(("own", value))
    assert [one.title for one in registry.available()] == ["My own system"]
    assert "own_module" not in sys.modules
    assert isinstance(registry.load("own"), System)


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([("own", "own_module:missing")], "cannot be imported"),
        ([("own", "no_module:system")], "cannot be imported"),
        ([("own", "broken_module:system")], "no_such_package"),
        ([("own", "own_module:number")], "is a int"),
        ([("other", "own_module:system")], "must be equal"),
        ([("own", "own_module:system"), ("own", "own_module:Own")], "more than one package"),
        ([("owner", "own_module:system")], "allowed: owner"),
    ],
)
def test_what_is_wrong_is_said(entries, pairs, words):
    entries(*pairs)
    name = pairs[0][0] if pairs[0][0] != "owner" else "own"
    with pytest.raises(UnknownSystem, match=words):
        registry.load(name)


def test_a_missing_module_is_listed_with_the_reason(entries):
    entries(("own", "no_module:system"))
    (listed,) = registry.available()
    assert "no module named 'no_module'" in listed.title
