"""Runs the examples. crates/paceline-cli/tests/newcomer runs the commands of the README."""

import os
import re
import subprocess
import sys
from pathlib import Path

import paceline
import pytest
from conftest import SOON_S

ROOT = Path(os.environ.get("PACELINE_ROOT", Path(__file__).parents[2]))
EXAMPLES = ROOT / "examples" / "python"
RUST_EXAMPLES = ROOT / "crates" / "paceline" / "examples"

# The examples that run without arguments, in Rust under the same names, and parts of their output.
ALONE = {
    "aligned": ["sound and picture of one instant"],
    "capacity": ["Refusal: link 'radio' of 'robot' can't carry it", "Grant: within"],
    "certificates": ["robot/camera: b'a picture'", "robot/secret: the policy of 'robot' does not allow it"],
    "contract": ["granted: within", " of 40 pictures"],
    "frames": ["shape (240, 320, 3)", "frame 4: 57600 bytes, shape (120, 160, 3)"],
    "pull": ["Summary(found=10, delivered=10, missing=0)"],
    "rates": ["all: 60 frames, [0, 1, 2, 3]"],
    "recording": ['robot/pose 0: {"x":0}', 'robot/pose 4: {"x":4}'],
    "refusal": [
        "no: link 'radio' of 'robot' can't carry it",
        "instead",
        "yes: Sample('robot/lidar', seq=0, 20000 bytes",
    ],
    "world": ["car/near of driver"],
}


def start(name: str, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def ended(process: "subprocess.Popen[str]", code: int = 0) -> str:
    out, _ = process.communicate(timeout=6 * SOON_S)
    assert process.returncode == code, out
    return out


@pytest.fixture
def host_node(host: Path) -> "paceline.Node":
    """Opens this host's node, so that no example has to become it."""
    return paceline.open(name="host")


@pytest.mark.parametrize("name", ALONE)
def test_examples_run_alone(name: str) -> None:
    out = ended(start(f"{name}.py"))
    assert all(part in out for part in ALONE[name]), out


def test_pub_and_sub(host_node: paceline.Node) -> None:
    with host_node:
        reader = start("sub.py", "robot/camera", "3")
        writer = start("pub.py", "robot/camera", "60")
        out = ended(reader)
        assert out.count("(120, 160, 3)") == 3 and "SubscriptionStatus(" in out
        assert "PublisherStatus(published=60" in ended(writer)


def test_sub_async(host_node: paceline.Node) -> None:
    with host_node:
        reader = start("sub_async.py", "robot/camera", "robot/steer", "2")
        with host_node.publisher("robot/camera") as camera, host_node.publisher("robot/steer") as steer:
            assert camera.wait_matching(SOON_S) and steer.wait_matching(SOON_S)
            for publisher in (camera, steer):
                publisher.put_many([b"12345", b"12345"])
            out = ended(reader)
    assert out.count("robot/camera") == out.count("robot/steer") == 2


def test_pull(host_node: paceline.Node) -> None:
    with host_node:
        assert "no node buffers" in ended(start("pull.py", "robot/camera"), code=1)
        camera = host_node.publisher("robot/camera", history_samples=10)
        camera.put_many([bytes(7)] * 3)
        out = ended(start("pull.py", "robot/camera", "2"))
    assert out.count("7 bytes") == 2 and "Summary(found=2, delivered=2, missing=0)" in out


def blocks(document: str) -> list[str]:
    text = (ROOT / document).read_text()
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_the_code_in_the_documents_is_valid_python() -> None:
    for block in blocks("docs/guides/python.md"):
        compile(block, "docs/guides/python.md", "exec")


def test_examples_are_short_and_listed() -> None:
    index = (ROOT / "docs/guides/examples.md").read_text()
    alone = [folder / f"{name}{end}" for name in ALONE for folder, end in ((EXAMPLES, ".py"), (RUST_EXAMPLES, ".rs"))]
    for example in {*EXAMPLES.glob("*.py"), *alone}:
        assert len(example.read_text().splitlines()) <= 60, example
        assert example not in alone or f"/{example.name})" in index, example
