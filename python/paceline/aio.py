"""Samples in asynchronous code: ``async for sample in subscriber``, without a thread that waits."""

import asyncio
from collections.abc import AsyncIterator

from ._native import Bell, Pulled, Sample, Subscriber
from .errors import ClosedError

__all__ = ["pulled", "recv", "samples"]

# Samples that are given before other tasks have a turn, where some always wait.
_TURN_SAMPLES = 64


async def samples(subscriber: Subscriber) -> AsyncIterator[Sample]:
    """The samples of ``subscriber`` until it is closed."""
    bell = Bell()
    given = 0
    while True:
        try:
            if (sample := subscriber.try_recv()) is None:
                sample = await _next(bell, subscriber)
        except ClosedError:
            return
        yield sample
        given += 1
        if given % _TURN_SAMPLES == 0:
            await asyncio.sleep(0)


async def recv(subscriber: Subscriber) -> Sample:
    """The next sample; to be bounded with :func:`asyncio.timeout`."""
    sample = subscriber.try_recv()
    return await _next(Bell(), subscriber) if sample is None else sample


async def _next(bell: Bell, subscriber: Subscriber) -> Sample:
    """Waits for the next sample."""
    loop = asyncio.get_running_loop()
    while True:
        rung = loop.create_future()
        loop.add_reader(bell.fileno(), _ring, rung)
        try:
            bell.arm(subscriber)
            # One may have come before it was armed.
            if (sample := subscriber.try_recv()) is not None:
                return sample
            await rung
        finally:
            loop.remove_reader(bell.fileno())
            bell.disarm()
        if (sample := subscriber.try_recv()) is not None:
            return sample


def _ring(rung: "asyncio.Future[None]") -> None:
    if not rung.done():
        rung.set_result(None)


async def pulled(pull: Pulled) -> AsyncIterator[Sample]:
    """The samples of ``pull``, each waited for on a thread of the loop's pool."""
    while (sample := await asyncio.to_thread(next, pull, None)) is not None:
        yield sample
