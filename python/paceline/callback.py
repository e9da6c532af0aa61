"""Samples by a call instead of iteration."""

import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from ._native import Sample, Subscriber
from .errors import ClosedError, Refused

__all__ = ["Callback"]


class Callback:
    """Calls ``deliver`` with each sample of ``subscriber``, on a thread of its own, until one of them is closed.

    What ``deliver`` raises goes to :func:`sys.unraisablehook`, is counted in ``failures``, and ends nothing: the next
    sample is delivered. ``refused`` has the refusal if one ended it.
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
        told = _Unraisable(kind, error, trace, f"Exception ignored in callback of {self._subscriber!r}", self._deliver)
        sys.unraisablehook(told)  # type: ignore[arg-type]  # the class that Python has for it cannot be made

    def close(self) -> None:
        """Ends the subscription, and waits for a call that is under way unless this is it."""
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
    """What :func:`sys.unraisablehook` is given."""

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
