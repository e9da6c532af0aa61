"""Publishes camera frames of 320x240 pixels, and receives them in full and at 160x120: python frames.py"""

import time

import numpy as np
import paceline


def main() -> None:
    picture = np.zeros((240, 320, 3), np.uint8)
    with paceline.Node(isolated=True) as node:
        # The encoding contains the size, so that nodes can scale the frames.
        camera = node.publisher("robot/camera", hz=30, encoding=paceline.encoding_of(picture))
        full = node.subscriber("robot/camera")
        small = node.subscriber("robot/camera", size=(160, 120))
        for number in range(5):
            picture[:] = number
            camera.put(picture)
            for frames in (full, small):
                frame = frames.recv(timeout_s=5)
                print(f"frame {frame.seq}: {len(frame)} bytes, shape {np.asarray(frame).shape}")
            time.sleep(1 / 30)


if __name__ == "__main__":
    main()
