"""Forks, signals and interpreter exit, each in its own process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import SOON_S


def run(script: str, *, code: int = 0) -> str:
    """Runs a program to its end and returns its output. A crash or a hang fails the test."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=6 * SOON_S)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


OPENED = """
import os, paceline, signal, sys, threading, time
node = paceline.open(name="it")
sub = node.subscriber("a")
pub = node.publisher("a", history_samples=10)
assert pub.wait_matching(10)
"""


def test_a_forked_child_raises_and_does_not_affect_its_parent() -> None:
    out = run(
        OPENED
        + """
child = os.fork()
if child == 0:
    for use in (lambda: pub.put(b"x"), sub.recv, sub.try_recv, sub.events, sub.close, lambda: node.publisher("b"),
                lambda: node.pull("a"), lambda: node.quotes("a"), paceline.open, pub.close, node.nodes):
        try:
            use()
        except paceline.ForkError as error:
            assert "spawn" in str(error)
        else:
            print("no error from", use)
    node.close()
    print(repr(node), repr(sub))
    del pub, sub, node
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
pub.put(b"parent")
print(bytes(sub.recv(10)))
"""
    )
    assert out.splitlines()[-1] == "b'parent'" and "no error" not in out
    assert "Node(of a parent process)" in out


def test_a_fork_while_another_thread_waits() -> None:
    run(
        OPENED
        + """
thread = threading.Thread(target=lambda: list(sub))
thread.start()
threading.Thread(target=lambda: [pub.put(b"x", wait=True) for _ in range(20_000)]).start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        try:
            pub.put(b"x")
        except paceline.ForkError:
            os._exit(3)
        os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
node.close()
thread.join(10)
assert not thread.is_alive()
"""
    )


def test_a_node_can_be_opened_after_a_fork_without_an_earlier_node() -> None:
    out = run(
        """
import os, sys, paceline
child = os.fork()
if child == 0:
    with paceline.open() as node:
        sub, pub = node.subscriber("a"), node.publisher("a")
        assert pub.wait_matching(10)
        pub.put(b"x")
        print(len(sub.recv(10)), flush=True)
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    )
    assert out == "1\n"


def test_spawned_processes_open_their_own_nodes() -> None:
    out = run(
        OPENED
        + """
import subprocess
child = "import paceline; n = paceline.open(); p = n.publisher('a'); assert p.wait_matching(10); p.put(b'spawned'); p.close()"
subprocess.run([sys.executable, "-c", child], check=True)
print(bytes(sub.recv(10)))
"""
    )
    assert out == "b'spawned'\n"


@pytest.mark.parametrize(
    "busy",
    [
        "threading.Thread(target=lambda: list(sub), daemon=True).start()",
        "threading.Thread(target=lambda: [pub.put(b'x') for _ in iter(int, 1)], daemon=True).start()",
        "threading.Thread(target=lambda: [pub.put(b'x', wait=True) for _ in iter(int, 1)], daemon=True).start()",
        "threading.Thread(target=lambda: node.publisher('nowhere').wait_matching(), daemon=True).start()",
        "threading.Thread(target=lambda: [list(node.pull('a', newest=5)) for _ in iter(int, 1)], daemon=True).start()",
        "cb = paceline.Callback(sub, lambda sample: time.sleep(0.01)); pub.put_many([bytes(9)] * 60)",
        "it = iter(sub); array = memoryview(bytearray(9)); pub.put(array)",
        "frames = []; pub.put(bytes(100_000)); frames.append(sub.recv(10).payload)",
    ],
)
def test_the_interpreter_exits_during_any_activity(busy: str) -> None:
    # No crash, no hang, and the program's own exit code.
    script = OPENED + "pub.put(b'held')\n" + busy + "\ntime.sleep(0.1)\nsys.exit(5)\n"
    for _ in range(3):
        run(script, code=5)


def test_the_last_samples_are_sent_before_exit(host: Path) -> None:
    reader = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import paceline; n = paceline.open(); s = n.subscriber('last'); print('ready', flush=True); print(bytes(s.recv(20)))",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert reader.stdout is not None and reader.stdout.readline() == "ready\n"
    run("import paceline; n = paceline.open(); p = n.publisher('last'); assert p.wait_matching(20); p.put(b'words')")
    out, _ = reader.communicate(timeout=6 * SOON_S)
    assert out == "b'words'\n"


@pytest.mark.parametrize(
    "wait",
    [
        "sub.recv()",
        "next(iter(sub))",
        "sub.take()",
        "node.publisher('nowhere').wait_matching()",
        "asyncio.run(paceline.aio.recv(sub))",
    ],
)
def test_ctrl_c_ends_a_wait(wait: str) -> None:
    script = (
        OPENED
        + f"""
import asyncio, paceline.aio
try:
    print("waits", flush=True)
    {wait}
except KeyboardInterrupt:
    sys.exit(9)
"""
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "waits\n"
    # The signal must end the wait whether or not it has begun by now.
    time.sleep(0.2)
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=6 * SOON_S)
    assert process.returncode == 9


def test_a_signal_handler_runs_during_a_wait() -> None:
    out = run(
        OPENED
        + """
signal.signal(signal.SIGALRM, lambda *_: pub.put(b"from the handler"))
signal.setitimer(signal.ITIMER_REAL, 0.1)
print(bytes(sub.recv(20)))
"""
    )
    assert out == "b'from the handler'\n"
