"""Pulls past samples: python pull.py robot/camera [NEWEST]

A node must buffer them: node.publisher(tag, history_samples=100), or `paceline node --buffer 'robot/**=100'`.
"""

import sys

import paceline


def main(tag: str, newest: int) -> None:
    with paceline.open() as node:
        try:
            pulled = node.pull(tag, newest=newest, timeout_s=10)
        except paceline.PullError as error:
            sys.exit(str(error))
        for sample in pulled:
            print(f"{sample.publisher} {sample.seq} {len(sample)} bytes, captured {sample.captured_ns}")
        print(pulled.summary)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10)
