"""Subscribes at its own rate, size and deadline: python sub.py robot/camera [SAMPLES]"""

import sys

import numpy as np
import paceline


def main(tag: str, samples: int) -> None:
    node = paceline.open()
    pictures = node.subscriber(tag, max_hz=10, size=(160, 120), within_ms=200, loss=(1, 10))
    for sample in pictures:
        picture = np.asarray(sample)  # the bytes that were received, not a copy
        print(f"{sample.tag} {sample.seq} {picture.shape} mean {picture.mean():.1f} age {sample.age_ms:.2f} ms")
        samples -= 1
        if samples == 0:
            break
    print(pictures.status())
    for event in pictures.events():
        print(event)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else -1)
