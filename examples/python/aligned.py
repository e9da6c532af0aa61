"""Plays a camera and a microphone together, although the pictures need 40 ms longer: python aligned.py

A sync group delivers all samples 150 ms after their capture.
"""

import queue
import time

import paceline

DELAY_MS = 150.0


def main() -> None:
    delivered: queue.Queue[tuple[int, float]] = queue.Queue()

    def play(sample: paceline.Sample) -> None:
        delivered.put((sample.captured_ns, time.monotonic()))

    with paceline.Node(isolated=True) as node:
        sound = node.publisher("stage/mic", hz=10)
        picture = node.publisher("stage/camera", hz=10)
        for tag in ("stage/mic", "stage/camera"):
            paceline.Callback(node.subscriber(tag, sync_group="stage", sync_delay_ms=DELAY_MS), play)
        for _ in range(10):
            captured_ns = time.time_ns()
            sound.put(b"a block of sound", captured_ns=captured_ns)
            time.sleep(0.04)
            picture.put(b"a picture", captured_ns=captured_ns)
            time.sleep(0.06)
        time.sleep(DELAY_MS / 1_000)

    first: dict[int, float] = {}
    while not delivered.empty():
        captured_ns, at = delivered.get()
        if captured_ns in first:
            print(f"sound and picture of one instant: {1_000 * (at - first[captured_ns]):.2f} ms apart")
        first[captured_ns] = at


if __name__ == "__main__":
    main()
