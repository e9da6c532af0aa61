"""Publishes video at 30 Hz to three subscribers, each with its own rate: python rates.py"""

import time

import numpy as np
import paceline

FRAMES = 60


def main() -> None:
    picture = np.zeros((48, 64, 3), np.uint8)
    with paceline.Node(isolated=True) as node:
        camera = node.publisher("robot/camera", hz=30, encoding=paceline.encoding_of(picture))
        # The publisher does not know these rates. The first frame is delivered at once, and the others by capture time.
        subscribers = {
            "all": node.subscriber("robot/camera"),
            "1 of 3": node.subscriber("robot/camera", every=3),
            "at most 5 Hz": node.subscriber("robot/camera", max_hz=5),
        }
        began = time.monotonic()
        for number in range(FRAMES):
            picture[:] = number
            camera.put(picture)
            # Absolute times, so that delays do not add up.
            time.sleep(max(0.0, began + (number + 1) / 30 - time.monotonic()))
        print(f"published {FRAMES} frames in {time.monotonic() - began:.1f} s")
        for rate, subscriber in subscribers.items():
            frames = [frame.seq for frame in subscriber.try_take()]
            print(f"{rate}: {len(frames)} frames, {frames[:4]} …")


if __name__ == "__main__":
    main()
