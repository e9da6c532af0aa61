"""Pulls past samples: python pull.py [TAG [NEWEST]]

A node must buffer them: node.publisher(tag, history_samples=100), or `paceline node --buffer 'robot/**=100'`. Without a
tag, the program publishes and buffers 20 samples itself.
"""

import sys

import paceline


def main(tag: str | None, newest: int) -> None:
    with paceline.open() as node:
        if tag is None:
            tag = "robot/camera"
            camera = node.publisher(tag, history_samples=100)
            camera.put_many([f"picture {number}".encode() for number in range(20)])
        try:
            pulled = node.pull(tag, newest=newest, timeout_s=10)
        except paceline.PullError as error:
            sys.exit(str(error))
        for sample in pulled:
            print(f"{sample.publisher} {sample.seq} {len(sample)} bytes, captured {sample.captured_ns}")
        print(pulled.summary)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None, int(sys.argv[2]) if len(sys.argv) > 2 else 10)
