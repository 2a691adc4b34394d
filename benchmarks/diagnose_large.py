"""Time and memory of a diagnosis of a model of 7 billion parameters, from one layer and the embedding.

    python benchmarks/diagnose_large.py [--directory DIRECTORY] [--processes 16]
    python benchmarks/diagnose_large.py --scaling  # square matrices of four sizes, and the exponents

Random matrices in bfloat16 with the shapes of Llama-2-7B (4,096 inputs, 11,008 hidden units, 32 heads,
32,000 words), in two shards with an index: 0.7 GB on disk. Each matrix of a layer is diagnosed once in
this process, with one thread. The other layers are assumed to take as long; then the start and the end
of every job of all 32 layers are computed, with the limit of 4 GB that the command keeps.
"""

from __future__ import annotations

import argparse
import heapq
import json
import resource
import tempfile
import time
import tracemalloc
from dataclasses import replace
from multiprocessing import Process
from pathlib import Path

import numpy as np
from gemm import exit_status, one_thread, show

LAYERS, WIDTH, HIDDEN, WORDS, HEADS = 32, 4_096, 11_008, 32_000, 32


def drawn(shape: tuple[int, int], signals: int, rng: np.random.Generator) -> np.ndarray:
    """Noise with signals above its edge, as the bits of bfloat16."""
    entries = np.float32(0.02) * rng.standard_normal(shape, dtype=np.float32)
    for k in range(signals):
        left, right = (rng.standard_normal(n, dtype=np.float32) / n**0.5 for n in shape)
        size = np.float32(0.02 * (3 + k) * max(shape) ** 0.5)
        for start in range(0, shape[0], 1_000):
            entries[start : start + 1_000] += size * left[start : start + 1_000, None] * right
    return (entries.view("<u4") >> 16).astype("<u2")


def write(folder: Path) -> None:
    """Write one layer and the embedding as two shards with an index."""
    rng = np.random.default_rng(0)
    layer = "model.layers.0."
    square, wide = (WIDTH, WIDTH), (HIDDEN, WIDTH)
    shapes = {f"{layer}self_attn.{name}_proj.weight": square for name in "qkvo"}
    shapes |= {f"{layer}mlp.{name}_proj.weight": wide for name in ("gate", "up")}
    shards = (
        shapes | {f"{layer}mlp.down_proj.weight": wide[::-1]},
        {"model.embed_tokens.weight": (WORDS, WIDTH)},
    )
    places = {}
    for number, shard in enumerate(shards, 1):
        header, place = {}, 0
        for name, shape in shard.items():
            end = place + 2 * shape[0] * shape[1]
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [place, end]}
            place = end
        file = f"model-{number:05d}-of-00002.safetensors"
        text = json.dumps(header).encode()
        with (folder / file).open("wb") as stream:
            stream.write(len(text).to_bytes(8, "little") + text)
            for k, shape in enumerate(shard.values()):
                stream.write(drawn(shape, k % 4, rng).tobytes())
        places |= dict.fromkeys(shard, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    (folder / "config.json").write_text(json.dumps({"num_attention_heads": HEADS}))


def ends_after(jobs: list, lanes: int, free: float) -> float:
    """Seconds until the last job has ended, if jobs start as in the command."""
    waiting = sorted(jobs, key=lambda job: -job.cost)
    running: list[tuple[float, int, float]] = []
    now = 0.0
    while waiting or running:
        while waiting and len(running) < lanes:
            left = free - sum(size for *_, size in running)
            fitting = (k for k, job in enumerate(waiting) if job.size <= left or not running)
            place = next(fitting, None)
            if place is None:
                break
            job = waiting.pop(place)
            heapq.heappush(running, (now + job.cost, len(waiting), job.size))
        now, *_ = heapq.heappop(running)
    return now


def timed(job) -> float:
    """Run a job and return its CPU time in seconds."""
    started = time.process_time()
    result = job.function(*job.arguments)
    spent = time.process_time() - started
    print(
        f"{job.key}: {spent:.1f} s, expected {job.cost:.1f} s, {getattr(result, 'phase', '')}",
        flush=True,
    )
    return spent


def scaling() -> None:
    """Print CPU time and memory of square matrices with three signals, and their exponents."""
    from solvable.diagnose import diagnose_matrix

    rng = np.random.default_rng(0)
    routes = {"--quick": (512, 1024, 2048, 4096), "all rows": (512, 1024, 2048)}
    for name, sizes in routes.items():
        laws = name == "all rows"
        seconds, held = [], []
        for size in sizes:
            bits = drawn((size, size), 3, rng).astype("<u4") << 16
            weights = bits.view("<f4")
            started = time.process_time()
            diagnose_matrix(weights.copy(), precision=2.0**-7, laws=laws, overwrite=True)
            seconds.append(time.process_time() - started)
            tracemalloc.start()
            diagnose_matrix(weights, precision=2.0**-7, laws=laws, overwrite=True)
            held.append((tracemalloc.get_traced_memory()[1] + weights.nbytes) / 1e9)
            tracemalloc.stop()
            print(f"{name}: {size} x {size}: {seconds[-1]:.2f} s, {held[-1]:.3f} GB", flush=True)
        for text, numbers in (("time", seconds), ("memory", held)):
            slope = np.log(numbers[-1] / numbers[-2]) / np.log(sizes[-1] / sizes[-2])
            print(f"{name}: {text} grows as the side to the power {slope:.2f} between the last two")


def whole_model(jobs: list, times: list[float]) -> list:
    """Jobs of all layers, with the measured times; input and output embedding are of one shape."""
    measured = [replace(job, cost=spent) for job, spent in zip(jobs, times, strict=True)]
    embeddings = [job for job in measured if "embed" in job.key]
    return [job for job in measured if job not in embeddings] * LAYERS + embeddings * 2


def main() -> None:
    """Write, measure each shape, and print the figures for the whole model."""
    from solvable.diagnose import diagnose_matrix
    from solvable.diagnose.attention.heads_of_file import (
        AttentionRequest,
        attention_in,
        head_jobs,
    )
    from solvable.diagnose.jobs import PROCESS, lanes_for
    from solvable.diagnose.matrices_of_file import jobs_of, opened

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--directory", default=None)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--scaling", action="store_true")
    options = parser.parse_args()
    if options.scaling:
        scaling()
        return
    limit = 4e9
    with tempfile.TemporaryDirectory(dir=options.directory) as place:
        # In a process of its own, whose memory does not count.
        writer = Process(target=write, args=(Path(place),))
        writer.start()
        writer.join()
        source = opened(place)
        diagnose_matrix(np.random.default_rng(0).standard_normal((40, 50)))  # imports
        heads = head_jobs(attention_in(source, AttentionRequest()), 0)
        matrices = jobs_of(source.arrays, {}, False, 0)
        routes = {"--quick": jobs_of(source.arrays, {}, False, 0, laws=False), "all rows": matrices}
        for name, jobs in routes.items():
            times = [timed(job) for job in jobs]
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            if name == "all rows":
                # One eighth of the heads of the layer; the others have the same shape.
                jobs, times = jobs + heads, times + [timed(heads[0])] * len(heads)
            every = whole_model(jobs, times)
            lanes = lanes_for(every, options.processes, limit)
            wall = ends_after(every, lanes, limit - (1 + lanes) * PROCESS)
            total = sum(job.cost for job in every)
            print(f"{name}: {total:.0f} s of CPU time, {lanes} processes in {limit / 1e9:.0f} GB")
            show(f"{name}: minutes of the whole model", wall / 60, 10, at_least=False)
            show(f"{name}: memory of one process, GB", peak, 4, at_least=False)


if __name__ == "__main__":
    with one_thread():
        main()
    raise SystemExit(exit_status())
