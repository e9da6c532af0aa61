"""Lowers the capacity of a link until a contract no longer fits, and restores it: python capacity.py"""

import socket
import time

import paceline

FULL, LOW = 2_000_000, 500_000


def wait(pictures: paceline.Subscriber, expected: type[paceline.Grant | paceline.Refusal]) -> None:
    """Waits until the contract is granted or refused, and prints the answer."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        for event in pictures.events():
            if isinstance(event, expected):
                print(f"{expected.__name__}: {event}")
                return
        time.sleep(0.01)
    raise SystemExit("no answer in time")


def main() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"tcp/127.0.0.1:{free.getsockname()[1]}"
    near = paceline.Link(name="radio", listen=[endpoint], capacity_bits_per_s=FULL)
    far = paceline.Link(name="radio", connect=[endpoint], capacity_bits_per_s=FULL)
    with (
        paceline.Node(name="robot", isolated=True, links=[near]) as robot,
        paceline.Node(name="operator", isolated=True, links=[far]) as operator,
        robot.publisher("robot/camera", hz=20, bytes_max=5_000),
    ):
        pictures = operator.subscriber("robot/camera", within_ms=200)
        wait(pictures, paceline.Grant)
        # The capacity belongs to the sender: here the robot.
        for capacity, expected in ((LOW, paceline.Refusal), (FULL, paceline.Grant)):
            print(f"capacity of the radio: {capacity // 1_000} kbit/s")
            robot.set_capacity("radio", capacity)
            wait(pictures, expected)


if __name__ == "__main__":
    main()
