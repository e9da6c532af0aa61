"""Shared fixtures: an isolated host, ports and waiting."""

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import paceline
import pytest

# Longer than any step of these tests takes. Only a failing test waits this long.
SOON_S = 10.0


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The runtime folder that joins the processes of a simulated host."""
    monkeypatch.setenv("PACELINE_RUNTIME_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def node(host: Path) -> Iterator[paceline.Node]:
    with paceline.open(name="test") as node:
        yield node


@pytest.fixture
def thin(host: Path) -> Iterator[tuple[paceline.Node, paceline.Node]]:
    """Two nodes joined by a link of 1 Mbit/s."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"tcp/127.0.0.1:{free.getsockname()[1]}"
    capacity = 1_000_000
    near = paceline.Link(name="radio", listen=[endpoint], capacity_bits_per_s=capacity)
    far = paceline.Link(name="radio", connect=[endpoint], capacity_bits_per_s=capacity)
    with (
        paceline.Node(name="robot", isolated=True, links=[near]) as robot,
        paceline.Node(name="operator", isolated=True, links=[far]) as operator,
    ):
        wait_until("the two meet", lambda: len(operator.nodes()) == 2)
        yield robot, operator


def wait_until(what: str, done: Callable[[], object]) -> None:
    """Waits until ``done`` returns true, and fails after ``SOON_S``."""
    until = time.monotonic() + SOON_S
    while not done():
        assert time.monotonic() < until, f"{what}: not within {SOON_S} s"
        time.sleep(0.005)
