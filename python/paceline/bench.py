"""Measures the cost of a sample in Python: ``python -m paceline.bench [--duration 5s] [--only out]``.

One process publishes and one reads. Each is pinned to its own core with all threads of its node.
The table shows the samples that the reader received, and the processor time of the measured
process.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from . import Node, Publisher, Subscriber, Timeout, open

__all__: list[str] = []

_TAG = "bench"
_BATCH = 1_000
_QUEUE = 65_536
_FRAME = (1080, 1920, 3)
# The reader stops after this time without a sample.
_SILENCE_S = 1.0


def _each(subscriber: Subscriber) -> Iterator[int]:
    """Yields the size of one sample per iteration."""
    while True:
        yield len(subscriber.recv(_SILENCE_S).payload)


def _taken(subscriber: Subscriber) -> Iterator[int]:
    """Yields the sizes of all queued samples, batch by batch."""
    while True:
        for sample in subscriber.take(timeout_s=_SILENCE_S):
            yield len(sample.payload)


def _arrays(subscriber: Subscriber) -> Iterator[int]:
    """Yields the size of one frame per iteration, read as an array over the received bytes."""
    import numpy as np

    while True:
        sample = subscriber.recv(_SILENCE_S)
        array = np.asarray(sample)
        if array.ctypes.data != np.frombuffer(sample.payload, np.uint8).ctypes.data:
            raise AssertionError("the array is a copy")
        yield array.nbytes


def _put(publisher: Publisher, until: float) -> Iterator[int]:
    payload = bytes(64)
    while time.monotonic() < until:
        for _ in range(_BATCH):
            publisher.put(payload, wait=True)
        yield _BATCH


def _put_many(publisher: Publisher, until: float) -> Iterator[int]:
    payloads = [bytes(64)] * _BATCH
    while time.monotonic() < until:
        publisher.put_many(payloads, wait=True)
        yield _BATCH


def _put_frames(publisher: Publisher, until: float) -> Iterator[int]:
    """Publishes frames from an array that the program owns: one copy each."""
    import numpy as np

    frame = np.zeros(_FRAME, np.uint8)
    number = 0
    while time.monotonic() < until:
        frame[:] = number % 256
        publisher.put(frame, wait=True)
        number += 1
        yield 1


def _put_loans(publisher: Publisher, until: float) -> Iterator[int]:
    """Publishes frames from loaned memory: no copy."""
    number = 0
    while time.monotonic() < until:
        frame = publisher.loan(_FRAME)
        frame.array[:] = number % 256
        publisher.put(frame, wait=True)
        number += 1
        yield 1


_READERS: dict[str, Callable[[Subscriber], Iterator[int]]] = {"each": _each, "taken": _taken, "arrays": _arrays}
_WRITERS: dict[str, Callable[[Publisher, float], Iterator[int]]] = {
    "put": _put,
    "put_many": _put_many,
    "frames": _put_frames,
    "loans": _put_loans,
}
# Name, writer, reader, and the process whose core is measured.
_RUNS = [
    ("in, `recv` of each", "put_many", "each", "read"),
    ("in, `take`", "put_many", "taken", "read"),
    ("out, `put` of each", "put", "taken", "write"),
    ("out, `put_many`", "put_many", "taken", "write"),
    ("1080p frames in, as arrays", "loans", "arrays", "read"),
    ("1080p frames out, `put` of an array", "frames", "arrays", "write"),
    ("1080p frames out, `put` of a loan", "loans", "arrays", "write"),
]


def _hold(core: int) -> None:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[core % len(cores)]})


def _read(node: Node, how: str) -> dict[str, Any]:
    subscriber = node.subscriber(_TAG, queue=_QUEUE if how != "arrays" else 8)
    print("ready", flush=True)
    samples = size = 0
    first = last = processor = time.monotonic()
    began = time.process_time()
    try:
        for size in _READERS[how](subscriber):
            if samples == 0:
                first, began = time.monotonic(), time.process_time()
            samples += 1
            if samples % 64 == 0 or how == "arrays":
                last, processor = time.monotonic(), time.process_time()
    except Timeout:
        pass
    return {
        "samples": samples,
        "bytes": size,
        "seconds": last - first,
        "processor_s": processor - began,
        "dropped": sum(subscriber.dropped.values()),
    }


def _write(node: Node, how: str, seconds: float) -> dict[str, Any]:
    with node.publisher(_TAG, bytes_max=64 if how.startswith("put") else None) as publisher:
        if not publisher.wait_matching(10):
            raise SystemExit("no reader found")
        began, processor = time.monotonic(), time.process_time()
        samples = sum(_WRITERS[how](publisher, began + seconds))
        return {
            "samples": samples,
            "seconds": time.monotonic() - began,
            "processor_s": time.process_time() - processor,
        }


def _run(writer: str, reader: str, seconds: float) -> tuple[dict[str, Any], dict[str, Any]]:
    with tempfile.TemporaryDirectory() as host:
        environment = {**os.environ, "PACELINE_RUNTIME_DIR": host}

        def start(*arguments: str) -> "subprocess.Popen[str]":
            command = [sys.executable, "-m", "paceline.bench", *arguments]
            return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)

        reading = start("--part", "read", "--how", reader)
        if reading.stdout is None or reading.stdout.readline() != "ready\n":
            raise SystemExit("cannot start the reader")
        writing = start("--part", "write", "--how", writer, "--duration", f"{seconds}s")
        written, _ = writing.communicate(timeout=seconds + 60)
        read, _ = reading.communicate(timeout=60)
        return json.loads(written), json.loads(read)


def _row(name: str, measured: str, written: dict[str, Any], read: dict[str, Any]) -> str:
    rate = read["samples"] / max(read["seconds"], 1e-9)
    sides = {"write": written, "read": read}
    side = sides[measured]
    core = side["processor_s"] / max(side["seconds"], 1e-9)
    each = side["processor_s"] / max(side["samples"], 1) * 1e6
    return (
        f"| {name} | {rate:,.0f} | {core * 100:.0f} % | {each:.2f} µs | {written['samples']:,} | {read['samples']:,} |"
        f" {read['dropped']:,} |"
    )


def _seconds(text: str) -> float:
    """Parses a duration with a unit, such as ``5s`` or ``500ms``; returns seconds."""
    for unit, factor in {"ms": 0.001, "min": 60.0, "s": 1.0}.items():
        if text.endswith(unit):
            return float(text[: -len(unit)]) * factor
    raise argparse.ArgumentTypeError(f"{text!r} needs a unit: {text}s (allowed: ms, s, min)")


def main() -> None:
    """Runs all benchmarks, or with ``--part`` one child process of a benchmark."""
    parser = argparse.ArgumentParser(prog="python -m paceline.bench", description=__doc__)
    parser.add_argument("--duration", type=_seconds, default="5s", help="publishing time of each run, such as 5s or 500ms")
    parser.add_argument("--only", default="", help="run only benchmarks whose name contains this text")
    parser.add_argument("--part", choices=["read", "write"], help=argparse.SUPPRESS)
    parser.add_argument("--how", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part is not None:
        _hold(0 if arguments.part == "read" else 1)
        with open() as node:
            part = _read(node, arguments.how) if arguments.part == "read" else _write(node, arguments.how, arguments.duration)
        print(json.dumps(part))
        return
    print("| 64-byte samples, or frames | read per second | of the measured core | processor time per sample | published | read | dropped unread |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, writer, reader, measured in _RUNS:
        if arguments.only in name:
            print(_row(name, measured, *_run(writer, reader, arguments.duration)), flush=True)


if __name__ == "__main__":
    main()
