"""Detection of rows that are equal in every column of the file."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import numpy as np

from solvable.data import Table, load
from solvable.data.copies import first_equal_rows


def test_rows_are_equal_in_all_columns_of_the_file(tmp_path: Path) -> None:
    # `unit` is constant and dropped, and `who` is the group; all columns are compared.
    rows = [
        "1.5,,red,n0,p,m,0",
        "1.5,,red,n0,p,m,0",  # equal to row 0
        "1.5,,red,n0,p,m,1",  # another target
        "1.5,,red,n1,p,m,0",  # another value of a column of many texts
        "1.5,,red,n0,q,m,0",  # another group
        "1.5,,,n0,p,m,0",  # a text is missing
        "1.5,,,n0,p,m,0",  # equal to row 5
        "1.5,2,red,n0,p,m,0",  # a number is not missing
        "1.5,,red,n0,,m,0",  # no group
        "1.5,,red,n0,,m,0",  # equal to row 8
        "0.0,,red,n0,p,m,0",
        "-0.0,,red,n0,p,m,0",  # equal to row 10
        "1.5,,red,n0,p,m,",  # no target: not a row of the data
    ]
    rows += [f"{i}.5,{i},blue,x{i},q,m,{i % 2}" for i in range(2, 40)]
    file = tmp_path / "rows.csv"
    file.write_text("\n".join(["size,weight,colour,name,who,unit,y", *rows]) + "\n")
    data = load(file, target="y", groups="who")
    assert set(dict(data.preparation.dropped)) == {"unit"}
    first = data.identical_rows()
    expected = np.arange(data.n_samples)
    expected[[1, 6, 9, 11]] = [0, 5, 8, 10]
    np.testing.assert_array_equal(first, expected)


def test_a_table_of_texts_alone_has_copies_too() -> None:
    colour = np.array(["red", None, "red", None], dtype=object)
    size = np.array(["s", "s", "s", "l"], dtype=object)
    table = Table(np.empty((4, 0)), (), {"colour": colour, "size": size})
    np.testing.assert_array_equal(first_equal_rows([table]), [0, 1, 0, 3])


def test_copies_agree_with_a_comparison_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        numbers = rng.integers(0, 2, size=(60, 3)).astype(rng.choice([np.float32, np.float64]))
        numbers[rng.random(numbers.shape) < 0.3] = np.nan
        numbers[rng.random(numbers.shape) < 0.3] *= -1
        words = np.array([None, "a", "b"], dtype=object)[rng.integers(0, 3, 60)]
        found = first_equal_rows([Table(numbers, tuple("abc"), {"word": words})])
        cells = [
            (*("gap" if x != x else x for x in row), word)
            for row, word in zip(numbers.tolist(), words, strict=True)
        ]
        assert found.tolist() == [cells.index(row) for row in cells]


def test_a_large_table_takes_a_second_or_two() -> None:
    rng = np.random.default_rng(0)
    numbers = np.repeat(rng.standard_normal((50_000, 40)), 2, axis=0)
    words = {f"w{i}": rng.choice(["a", "b", None], 50_000).repeat(2) for i in range(10)}
    table = Table(numbers, tuple(f"x{i}" for i in range(40)), words)
    began = process_time()
    first = first_equal_rows([table])
    assert process_time() - began < 5  # about 0.5 s of CPU
    np.testing.assert_array_equal(first, np.arange(100_000) // 2 * 2)
