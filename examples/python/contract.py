"""Requests a contract: each picture within 200 ms, at most 1 of 10 late, over a link of 2 Mbit/s: python contract.py"""

import socket
import time

import paceline

SAMPLES = 40


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def main() -> None:
    endpoint = f"tcp/127.0.0.1:{free_port()}"
    near = paceline.Link(name="radio", listen=[endpoint], capacity_bits_per_s=2_000_000)
    far = paceline.Link(name="radio", connect=[endpoint], capacity_bits_per_s=2_000_000)
    with (
        paceline.Node(name="robot", isolated=True, links=[near]) as robot,
        paceline.Node(name="operator", isolated=True, links=[far]) as operator,
    ):
        # A contract needs a rate and a size. Late pictures are dropped by default; here they are counted.
        camera = robot.publisher("robot/camera", hz=20, bytes_max=5_000, late=True)
        pictures = operator.subscriber("robot/camera", within_ms=200, loss=(1, 10))
        if not camera.wait_matching(5):
            raise SystemExit("no grant in time")
        for _ in range(SAMPLES):
            camera.put(bytes(5_000))
            time.sleep(1 / 20)
        for event in pictures.events():
            if isinstance(event, paceline.Grant):
                print(f"granted: {event}")
        status = pictures.status()
        print(f"{status.delivered} of {SAMPLES} pictures, {status.late} late")


if __name__ == "__main__":
    main()
