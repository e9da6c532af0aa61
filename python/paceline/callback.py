"""Delivers samples to a callback."""

import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from ._native import Sample, Subscriber
from .errors import ClosedError, Refused

__all__ = ["Callback"]


class Callback:
    """Calls ``deliver`` with each sample of ``subscriber``, on its own thread.

    >>> with paceline.Callback(node.subscriber("robot/camera"), print):
    ...     time.sleep(10)

    The thread ends when the callback or the subscriber is closed. An exception from ``deliver`` is
    passed to :func:`sys.unraisablehook` and counted in ``failures``; delivery continues. If a
    refusal ended the subscription, ``refused`` contains it.
    """

    def __init__(self, subscriber: Subscriber, deliver: Callable[[Sample], object]) -> None:
        if not callable(deliver):
            raise TypeError(f"deliver={deliver!r}: it must be callable")
        self.failures = 0
        self.refused: Refused | None = None
        self._subscriber = subscriber
        self._deliver = deliver
        self._thread = threading.Thread(target=self._run, name=f"paceline-{subscriber.id}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                samples = self._subscriber.take()
            except ClosedError:
                return
            except Refused as refused:
                self.refused = refused
                return
            for sample in samples:
                try:
                    self._deliver(sample)
                except Exception:
                    self.failures += 1
                    self._report()

    def _report(self) -> None:
        kind, error, trace = sys.exc_info()
        unraisable = _Unraisable(kind, error, trace, f"Exception ignored in callback of {self._subscriber!r}", self._deliver)
        sys.unraisablehook(unraisable)  # type: ignore[arg-type]  # Python's own class for it cannot be constructed

    def close(self) -> None:
        """Ends the subscription and waits for a running call of ``deliver``.

        Does not wait when called from ``deliver`` itself.
        """
        self._subscriber.close()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Callback({self._subscriber!r}, failures={self.failures})"


class _Unraisable:
    """The argument of :func:`sys.unraisablehook`."""

    def __init__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        exc_traceback: TracebackType | None,
        err_msg: str,
        object: object,
    ) -> None:
        self.exc_type = exc_type
        self.exc_value = exc_value
        self.exc_traceback = exc_traceback
        self.err_msg = err_msg
        self.object = object
