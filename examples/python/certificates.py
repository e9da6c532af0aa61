"""Connects two nodes over QUIC with certificates, and grants the operator one tag of two: python certificates.py"""

import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import paceline

POLICY = """
[[rule]]
peers = ["operator"]
subscribe = ["robot/camera"]
"""


def trust(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "paceline", "trust", *arguments], check=True, stdout=subprocess.DEVNULL)


def files(folder: str, name: str) -> tuple[str, str, str]:
    """Returns the certificate of a node, its key and the authority of the network."""
    out = Path(folder, name)
    trust("issue", name, "--dir", folder, "--out", str(out))
    return str(out / f"{name}.pem"), str(out / f"{name}.key"), str(out / "ca.pem")


def main() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"quic/127.0.0.1:{free.getsockname()[1]}"
    with tempfile.TemporaryDirectory() as folder:
        trust("init", "--dir", folder)
        policy = Path(folder, "narrow.toml")
        policy.write_text(POLICY)
        near = paceline.Link(name="radio", listen=[endpoint], tls=files(folder, "robot"))
        far = paceline.Link(name="radio", connect=[endpoint], tls=files(folder, "operator"))
        with (
            paceline.Node(name="robot", isolated=True, links=[near], policy=policy) as robot,
            paceline.Node(name="operator", isolated=True, links=[far]) as operator,
        ):
            camera, _secret = robot.publisher("robot/camera"), robot.publisher("robot/secret")
            pictures, secrets = operator.subscriber("robot/camera"), operator.subscriber("robot/secret")
            camera.wait_matching(5)
            camera.put(b"a picture")
            print(f"robot/camera: {bytes(pictures.recv(timeout_s=5))!r}")
            time.sleep(0.5)
            for event in secrets.events():
                if isinstance(event, paceline.Refusal):
                    print(f"robot/secret: {event}")


if __name__ == "__main__":
    main()
