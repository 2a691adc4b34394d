"""Parameters: sizes computed from ratios, and limits for measurements that do not hold for theory."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from solvable.cli import main
from solvable.errors import InvalidParameter
from solvable.frame import registry
from solvable.frame.parameters import Limit, Parameters, Size, check_limits, memory
from solvable.frame.system import System
from solvable.study import Study, run_study


class Setting(Parameters):
    dimension: int = 10
    sample_ratio: float = 2.0
    rank_ratio: float = 0.01
    samples = Size("sample_ratio", "dimension", least=4)
    n_pairs = Size("sample_ratio", "dimension", lambda p: p.dimension + 1, least=1)
    rank = Size("rank_ratio", "dimension", floor=1)
    limits = (
        Limit(lambda p: p.dimension, 600, "dimension is {dimension}", "dimension"),
        memory(lambda p: p.samples * p.dimension, 1e-5, "{samples} samples", "sample_ratio"),
    )


def measure(parameters, rng):
    return {"error": rng.standard_normal()}


system = System(name="s", title="S", version="1", parameters=Setting, measure=measure,
                predict=lambda p: {"error": 0.0})  # fmt: skip


def test_a_size_is_its_ratio_of_other_numbers():
    setting = Setting(sample_ratio=0.84)
    assert (setting.samples, setting.n_pairs, setting.rank) == (8, 92, 1)
    assert "samples" not in Setting.model_fields


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"sample_ratio": 0.2}, "sample_ratio is 0.2, so that there are 2 samples; allowed: at least 4"),
        ({"sample_ratio": 0.2}, "sample_ratio of 0.4 here"),
    ],
)  # fmt: skip
def test_a_size_below_the_least_is_refused(values, words):
    with pytest.raises(InvalidParameter, match=words):
        Setting(**values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"dimension": "many"}, "dimension is 'many'; allowed: whole numbers."),
        ({"rank_ratio": float("nan")}, "rank_ratio is nan; allowed: numbers."),
        ({"dimensoin": 3}, "the name of a parameter of Setting is 'dimensoin'; allowed: dimension, "
         "sample_ratio, rank_ratio. Did you mean 'dimension'?"),
    ],
)  # fmt: skip
def test_construction_in_python_refuses_with_the_words_of_the_command_line(values, message):
    with pytest.raises(InvalidParameter) as caught:
        Setting(**values)
    assert str(caught.value) == message


class Checked(Parameters):
    link: str = "relu"
    kind: str = "even"

    @field_validator("kind")
    @classmethod
    def _kind(cls, value):
        raise InvalidParameter(f"{value!r} is unknown; allowed: even.")

    @model_validator(mode="after")
    def _link(self):
        raise InvalidParameter(f"the formula {self.link!r} is unknown; allowed: relu.")


def test_an_error_of_a_validator_names_its_parameter():
    with pytest.raises(InvalidParameter, match=r"^kind: 'odd' is unknown"):
        Checked(kind="odd")
    with pytest.raises(InvalidParameter, match=r"^link: the formula 'abc' is unknown"):
        Checked(link="abc")


def test_less_than_one_is_refused_in_the_singular():
    class Pairs(Parameters):
        ratio: float = 0.001
        n_pairs = Size("ratio", lambda p: 100, least=1)

    with pytest.raises(
        InvalidParameter, match=r"0\.001, less than one pair; allowed: at least 0\.01"
    ):
        Pairs(ratio=0.001)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"dimension": 601}, "dimension is 601; allowed for a measurement: up to 600. Lower dimension"),
        ({"sample_ratio": 20.0}, "200 samples take 0.0 GB; allowed for a measurement: up to 1e-05 GB"),
    ],
)  # fmt: skip
def test_a_study_beyond_a_limit_is_refused_before_it_starts(values, words, tmp_path):
    study = Study(system, {**{"dimension": 10}, **values})
    with pytest.raises(InvalidParameter, match=words):
        run_study(study, tmp_path / "run", workers=1)
    assert not (tmp_path / "run").exists()
    assert system.predict(Setting(**values)) == {"error": 0.0}


def test_parameters_of_another_base_have_no_limits():
    class Plain(BaseModel):
        model_config = ConfigDict(frozen=True)
        samples: int = 10**12

    check_limits(Plain())


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("bilinear-sequence", "dimension=5000"),
        ("boltzmann-machine", "dimension=100000"),
        ("attention-indexed", "dimension=5000"),
    ],
)
def test_theory_answers_at_sizes_that_only_a_measurement_cannot_afford(
    name, setting, capsys, tmp_path
):
    assert main(["theory", name, "--set", setting, "--json"]) == 0
    assert '"prediction"' in capsys.readouterr().out
    directory = str(tmp_path / "run")
    assert main(["run", name, "--set", setting, "--output", directory]) == 2
    err = capsys.readouterr().err
    assert "allowed for a measurement" in err
    assert len(err.strip().splitlines()) == 1


def test_presets_are_within_the_limits():
    for listing in registry.available():
        loaded = registry.load(listing.name)
        for name in loaded.presets:
            Study(loaded, preset=name).check_limits()
