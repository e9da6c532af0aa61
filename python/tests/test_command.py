"""The ``paceline`` command of the wheel: the script and ``python -m paceline``."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SOON_S

SCRIPT = [str(Path(sys.executable).parent / "paceline")]
MODULE = [sys.executable, "-m", "paceline"]
BOTH = pytest.mark.parametrize("command", [SCRIPT, MODULE], ids=["script", "module"])


@BOTH
def test_the_script_has_the_version_and_exit_codes_of_the_binary(command: list[str]) -> None:
    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=SOON_S)

    version = run("--version")
    assert version.returncode == 0 and version.stdout.startswith("paceline "), version
    assert "demo" in run("--help").stdout
    wrong = run("sub")
    assert wrong.returncode == 2 and "Usage:" in wrong.stderr, wrong
    assert "Traceback" not in wrong.stderr


def test_a_publisher_of_the_command_serves_a_subscriber_of_the_package() -> None:
    import paceline

    with paceline.open() as node, node.subscriber("words") as words:
        command = [*SCRIPT, "pub", "words", "-"]
        done = subprocess.run(command, input=b"hello\n", capture_output=True, timeout=SOON_S)
        assert done.returncode == 0, done
        assert bytes(words.recv(SOON_S)) == b"hello"


def test_ctrl_c_ends_a_node_without_an_error() -> None:
    node = subprocess.Popen([*SCRIPT, "node"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert node.stdout is not None and node.stdout.readline()
    node.send_signal(signal.SIGINT)
    problem = node.communicate(timeout=SOON_S)[1]
    assert node.returncode == 0 and problem == "", problem


def test_the_unit_starts_the_script() -> None:
    unit = subprocess.run([*SCRIPT, "node", "--print-unit"], capture_output=True, text=True, timeout=SOON_S).stdout
    starts = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    assert starts in ([f'ExecStart="{SCRIPT[0]}" node'], ['ExecStart="/usr/local/bin/paceline" node']), unit


@BOTH
def test_the_demo_starts_its_nodes_and_ends_by_ctrl_c(command: list[str]) -> None:
    demo = subprocess.Popen([*command, "demo", "--no-http", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert demo.stdout is not None
    first = json.loads(demo.stdout.readline())
    demo.send_signal(signal.SIGINT)
    rest, problem = demo.communicate(timeout=2 * SOON_S)
    # 3: a busy machine may not reach the demo's rates within one second.
    assert demo.returncode in (0, 3), problem
    assert "Traceback" not in problem and first and "summary" in rest
