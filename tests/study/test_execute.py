from __future__ import annotations

import io
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from multiprocessing import get_context

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import solvable
from solvable.errors import InvalidData
from solvable.study import Study
from solvable.study.execute import Job, execute, plain_metrics


def job(toy, kind="task", version="1", **parameters):
    study = Study(toy, parameters)
    (task,) = study.tasks
    identity = task.identity if kind == "task" else task.point
    return Job(kind, identity, toy, version, task.parameters)


def test_a_task_is_measured_with_the_stream_of_its_identity(toy):
    one = job(toy, size=7, scale=2.0)
    outcome = execute(one)
    (task,) = Study(toy, {"size": 7, "scale": 2.0}).tasks
    draws = 2.0 * task.stream().standard_normal((7, 30))
    assert (outcome.kind, outcome.identity, outcome.error) == ("task", task.identity, None)
    assert outcome.metrics["mean"] == draws.mean()
    # Another routine gives the same singular values, up to rounding.
    largest = np.linalg.svd(draws, compute_uv=False)[2::-1] ** 2
    np.testing.assert_allclose(outcome.metrics["spectrum"], largest, rtol=1e-12)
    assert outcome.metrics["absent"] is None


def test_the_teacher_is_drawn_from_the_state_that_measure_received(toy):
    outcome = execute(job(toy))
    arrays = {
        name: np.load(io.BytesIO(content), allow_pickle=False)
        for name, content in outcome.arrays.items()
    }
    (task,) = Study(toy).tasks
    np.testing.assert_array_equal(arrays["first"], task.stream().standard_normal(4))
    assert arrays["labels"].tolist() == ["a", "b"]


def test_a_prediction_draws_nothing_and_keeps_no_arrays(toy):
    outcome = execute(job(toy, "prediction", size=7))
    assert outcome.metrics == {"mean": 0.0, "spectrum": [7.0] * 3, "width": 1.0}
    assert outcome.arrays == {}


def test_parameters_reach_the_system_as_its_own_types(toy):
    seen = []

    class Spy(type(toy)):
        def measure(self, parameters, rng):
            seen.append(parameters)
            return {}

    execute(job(Spy(), widths=[[3, 4]]))
    assert seen[0].widths == (3, 4)
    assert isinstance(seen[0], toy.parameters)


def test_one_blas_thread_during_a_task_and_the_old_number_afterwards(toy):
    execute(job(toy))  # a first run loads the libraries
    with threadpool_limits(limits=2, user_api="blas"):
        before = [one["num_threads"] for one in threadpool_info()]
        assert execute(job(toy)).metrics["threads"] == 1
        assert [one["num_threads"] for one in threadpool_info()] == before


def test_provenance(toy):
    found = execute(job(toy, pause=0.3, work=0.2)).provenance
    assert found["library"] == solvable.__version__
    assert found["numpy"] == np.__version__
    assert found["dtype"] == "float64"
    assert 0.5 <= found["seconds"] < 10
    # Sleep is not CPU time, but the CPU time of other threads of the process is included.
    assert 0.2 <= found["cpu_seconds"] < 10


def test_peak_memory_is_of_the_task_alone(toy):
    # A process of its own: an allocator that earlier tests have used may hold 200 MB already.
    jobs = [job(toy), job(toy), job(toy, megabytes=200), job(toy)]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        outcomes = list(pool.map(execute, jobs))
    _, before, large, after = (outcome.provenance["peak_memory"] for outcome in outcomes)
    assert large - before > 150 * 2**20
    assert after < large - 150 * 2**20


def test_dtype_comes_from_the_parameters(toy):
    class Single(toy.parameters):
        dtype: str = "float32"

    class InSingle(type(toy)):
        parameters = Single

    assert execute(job(InSingle())).provenance["dtype"] == "float32"


@pytest.mark.parametrize(
    ("parameters", "kind", "error"),
    [
        ({"action": "raise"}, "task", "ArithmeticError: the toy was asked to fail"),
        ({"action": "exit"}, "task", "SystemExit: enough"),
        ({"action": "predict"}, "prediction", "ArithmeticError: no theory here"),
        ({"action": "object"}, "prediction", "InvalidData: metric 'mean' holds a object"),
        ({"action": "teacher"}, "task", "InvalidData: teacher array 'names' has dtype object"),
    ],
)
def test_what_a_system_raises_is_returned_in_one_line(toy, parameters, kind, error):
    outcome = execute(job(toy, kind, **parameters))
    assert outcome.metrics is None
    assert outcome.error.startswith(error)
    assert "\n" not in outcome.error
    assert "Traceback" in outcome.trace


def test_an_error_without_a_message(toy):
    class Silent(type(toy)):
        def measure(self, parameters, rng):
            raise KeyError

    assert execute(job(Silent())).error == "KeyError: no message"


def test_ctrl_c_is_not_an_error_of_the_task(toy, ctrl_c):
    with pytest.raises(KeyboardInterrupt):
        execute(job(toy, action="interrupt"))


def test_a_worker_with_another_version_refuses(toy):
    outcome = execute(job(toy, version="2"))
    assert outcome.error.startswith(
        "InvalidData: this worker has version 1 of toy; the study needs 2"
    )


def test_plain_metrics():
    plain = plain_metrics(
        {
            "float32": np.float32(0.1),
            "integer": np.int64(3),
            "truth": np.True_,
            "fraction": Fraction(1, 4),
            "scalar": np.array(2.0),
            "list": [1, None, np.inf, -np.inf, np.nan],
            "tuple": (True, np.float64(2.5)),
            "array": np.array([1, 2]),
            "empty": [],
            "nothing": None,
            "nan": float("nan"),
            "word": np.str_("bulk+spikes"),
            "words": np.array("heavy tail"),
        }
    )
    assert plain == {
        "float32": float(np.float32(0.1)),
        "integer": 3.0,
        "truth": 1.0,
        "fraction": 0.25,
        "scalar": 2.0,
        "list": [1.0, None, None, None, None],
        "tuple": [1.0, 2.5],
        "array": [1.0, 2.0],
        "empty": [],
        "nothing": None,
        "nan": None,
        "word": "bulk+spikes",
        "words": "heavy tail",
    }
    assert all(type(value) in (float, list, str, type(None)) for value in plain.values())


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ([1.0], "the metrics are a list; allowed: a mapping"),
        ({"a": ["text"]}, "metric 'a' holds a str; allowed: a number, None"),
        ({"a": np.array(["text"])}, "metric 'a' holds a str"),
        ({"a": b"text"}, "metric 'a' holds a bytes"),
        ({"a": "two\nlines"}, r"metric 'a' is the text 'two\\nlines'; allowed: printable words"),
        ({"a": ""}, "metric 'a' is the text ''"),
        ({"a": "\udc80"}, "metric 'a' is the text"),
        ({"a": 1j}, "metric 'a' holds a complex"),
        ({"a": np.ones((2, 2))}, r"metric 'a' holds a ndarray of shape \(2, 2\)"),
        ({"a": [[1.0]]}, "metric 'a' holds a list"),
        ({"a": {"b": 1.0}}, "metric 'a' holds a dict"),
    ],
)
def test_metrics_that_are_neither_numbers_nor_words(metrics, message):
    with pytest.raises(InvalidData, match=message):
        plain_metrics(metrics)
