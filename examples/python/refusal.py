"""Requests more than a link of 1 Mbit/s can guarantee, is refused, and accepts the offer: python refusal.py"""

import socket
import time
from typing import Any

import paceline

ENDPOINT = "tcp/127.0.0.1:{}"
CAPACITY = 1_000_000


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def main() -> None:
    endpoint = ENDPOINT.format(free_port())
    near = paceline.Link(name="radio", listen=[endpoint], capacity_bits_per_s=CAPACITY)
    far = paceline.Link(name="radio", connect=[endpoint], capacity_bits_per_s=CAPACITY)
    robot = paceline.Node(name="robot", isolated=True, links=[near])
    operator = paceline.Node(name="operator", isolated=True, links=[far])
    # Send late samples too: this host may be busy with other work.
    lidar = robot.publisher("robot/lidar", hz=20, bytes_max=20_000, late=True)

    request: dict[str, Any] = {"within_ms": 300}
    while not operator.quotes("robot/lidar", **request):
        time.sleep(0.05)  # until the nodes are connected
    try:
        scans = operator.subscriber("robot/lidar", **request, require=True)
    except paceline.Refused as no:
        print(f"no: {no}")
        print(f"node {no.node}, link {no.link}: needs {no.needed_bytes_per_s} of {no.available_bytes_per_s} bytes/s")
        print(f"requesting {no.offer} instead")
        scans = operator.subscriber("robot/lidar", **{**request, **no.offer}, require=True)
    lidar.wait_matching(5)
    lidar.put(bytes(20_000))
    print(f"yes: {scans.recv(5)}")


if __name__ == "__main__":
    main()
