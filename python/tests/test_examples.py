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


def test_refusal() -> None:
    out = ended(start("refusal.py"))
    assert out.startswith("no: link 'radio' of 'robot' can't carry it") and "instead" in out
    assert "yes: Sample('robot/lidar', seq=0, 20000 bytes" in out


def blocks(document: str) -> list[str]:
    text = (ROOT / document).read_text()
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_the_code_in_the_documents_is_valid_python() -> None:
    for block in blocks("docs/guides/python.md"):
        compile(block, "docs/guides/python.md", "exec")


def test_examples_are_short() -> None:
    for example in EXAMPLES.glob("*.py"):
        assert len(example.read_text().splitlines()) <= 60, example
