"""The error line of unforeseen errors, and of very long input."""

from __future__ import annotations

import pytest

from solvable.errors import LONGEST_QUOTE, InvalidParameter, quoted, shortened, unknown_choice

BUG = "the first line\x1b]0;title\x07 " + 300 * "x" + "\nthe second line"


@pytest.fixture
def faulty(monkeypatch):
    """Return a function that makes `theory_of` raise an unforeseen error."""

    def raising(error):
        def theory_of(*words, **settings):
            raise error

        monkeypatch.setattr("solvable.verbs.theory_of", theory_of)

    monkeypatch.delenv("SOLVABLE_DEBUG", raising=False)
    return raising


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ZeroDivisionError("float division by zero"), "ZeroDivisionError: float division by zero;"),
        (OverflowError(34, "out of range"), "OverflowError: (34, 'out of range');"),
        (OSError("without a number"), "OSError: without a number;"),
        (AssertionError(), "AssertionError;"),
    ],
)
def test_an_unforeseen_error_is_one_line_and_asks_for_a_report(call, faulty, error, name):
    faulty(error)
    status, printed, said = call("theory", "probe")
    assert (status, printed) == (2, "")
    assert said.count("\n") == 1
    assert said.startswith(f"solvable: an error of the program, {name}")
    assert "please report it with this command" in said


def test_an_unforeseen_message_is_cut_to_its_first_line(call, faulty):
    faulty(RuntimeError(BUG))
    _, _, said = call("theory", "probe")
    assert "the first line" in said
    assert "second" not in said
    assert not {"\x1b", "\x07"} & set(said)
    assert len(said) < 500


def test_the_traceback_is_shown_on_request(call, faulty, monkeypatch):
    monkeypatch.setenv("SOLVABLE_DEBUG", "1")
    faulty(ZeroDivisionError("float division by zero"))
    status, _, said = call("theory", "probe")
    assert status == 2
    assert said.startswith("Traceback (most recent call last)")
    assert "in theory_of" in said
    assert "please report it with this command" in said.splitlines()[-1]


@pytest.mark.parametrize("error", [SystemExit(7), KeyboardInterrupt()])
def test_exits_and_interrupts_are_no_errors_of_the_program(call, faulty, error):
    faulty(error)
    if isinstance(error, SystemExit):
        with pytest.raises(SystemExit):
            call("theory", "probe")
        return
    status, _, said = call("theory", "probe")
    assert (status, said) == (130, "solvable: interrupted.\n")


LONG = [
    ["theory", "probe", "--set", "{}=3"],
    ["theory", "probe", "--set", "samples={}"],
    ["theory", "probe", "--set", "kind={}"],
    ["theory", "probe", "--set", "widths=[{}"],
    ["theory", "probe", "--set", "widths=[{}]"],
    ["theory", "probe", "--set", "{}"],
    ["theory", "probe", "--set", "{}=1", "{}=2"],
    ["theory", "probe", "--set", "{}="],
    ["theory", "{}"],
    ["run", "{}"],
    ["run", "{}", "--help"],
    ["cite", "{}"],
    ["list", "{}"],
    ["{}"],
    ["run", "probe", "--preset", "{}"],
    ["run", "probe", "--seeds", "{}"],
    ["run", "probe", "--output", "{}"],
    ["run", "probe", "--{}"],
    ["run", "probe", "{}"],
    ["verify", "{}"],
    ["learn", "{}"],
    ["learn", "iris", "--target", "{}"],
    ["forecast", "{}"],
    ["diagnose", "{}"],
    ["predict", "{}", "{}"],
    ["activations", "{}"],
    ["activations", "relu", "--noise", "{}"],
    ["theory", "single-index", "--set", "link={}"],
    ["scale", "{}"],
    ["scale", "--layers", "{}", "--target", "he3"],
    ["scale", "--layers", "erf:1", "--target", "{}"],
]


@pytest.mark.parametrize("part", ["x 1", "\x1b\u202e", "9"])
@pytest.mark.parametrize("words", LONG, ids=" ".join)
def test_long_input_is_not_repeated(call, words, part):
    typed = (100_000 // len(part)) * part
    status, _, said = call(*[word.format(typed) for word in words])
    assert status == 2
    assert said.count("\n") == 1
    assert len(said) < 1_000
    assert not {"\x1b", "\u202e"} & set(said)


def test_long_paths_are_cut(call, tmp_path):
    place = "/".join(20 * [90 * "d"])
    status, _, said = call("verify", place)
    assert status == 2
    assert len(said) < 600


def test_values_are_quoted_up_to_a_length():
    assert quoted("rnu") == "'rnu'"
    assert quoted("\x1b\u202e") == r"'\x1b\u202e'"
    assert quoted(10**5_000) == "int of too many digits"
    text = "begin" + 10_000 * "x" + "end"
    assert len(quoted(text)) == LONGEST_QUOTE
    assert quoted(text).startswith("'begin")
    assert quoted(text).endswith("end'")
    assert "10010 characters" in quoted(text)
    assert shortened("a" * LONGEST_QUOTE) == "a" * LONGEST_QUOTE


def test_the_nearest_choice_of_a_long_value_is_found_fast():
    message = unknown_choice("kind", "mean" + 10**6 * "x", ["mean", "median"])
    assert len(message) < 300
    with pytest.raises(InvalidParameter):
        raise InvalidParameter(message)
