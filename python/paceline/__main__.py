"""The ``paceline`` command. The wheel installs it as a script; ``python -m paceline`` runs it too."""

import os
import signal
import sys

from . import _native

__all__: list[str] = []


def _again() -> list[str]:
    """Returns the words that start this program again: the demo starts child processes."""
    script = os.path.abspath(sys.argv[0])
    if os.path.basename(script) != "__main__.py" and os.access(script, os.X_OK):
        return [script]
    return [sys.executable, "-m", "paceline"]


def main() -> int:
    """Runs the command line and returns its exit code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # The command handles Ctrl-C. Python's handler would act only after the command has ended.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    setting = _native.thread_setting()
    if setting is not None:
        # Zenoh reads it from the environment when the first node opens. Child processes inherit it.
        os.environ[setting[0]] = setting[1]
    return _native.command(["paceline", *sys.argv[1:]], _again())


if __name__ == "__main__":
    sys.exit(main())
