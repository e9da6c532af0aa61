"""Publishes raw pictures of 320x240 at 30 Hz, as numpy arrays: python pub.py robot/camera [SAMPLES]"""

import sys
import time

import numpy as np
import paceline


def main(tag: str, samples: int) -> None:
    picture = np.zeros((240, 320, 3), np.uint8)
    encoding = paceline.encoding_of(picture)
    with paceline.open() as node, node.publisher(tag, hz=30, encoding=encoding) as camera:
        began = time.monotonic()
        for number in range(samples):
            picture[:] = number % 256
            camera.put(picture)
            # Absolute times, so that errors do not add up.
            time.sleep(max(0.0, began + (number + 1) / 30 - time.monotonic()))
        print(camera.status())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10**9)
