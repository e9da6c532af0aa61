"""Samples in asynchronous code: ``async for sample in subscriber``, ``await publisher.put_async(…)``, without a thread
that waits."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from ._native import Bell, Publisher, Pulled, Put, Sample, Subscriber
from .errors import ClosedError

__all__ = ["pulled", "put", "recv", "samples"]

# A stream that goes away does not tell of room: look again after so long.
_LOOK_AGAIN_S = 0.1
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


async def put(
    publisher: Publisher,
    payload: Any,
    *,
    encoding: str | None = None,
    captured_ns: int | None = None,
    attachment: bytes | None = None,
) -> Put:
    """Publishes one sample once every stream has room for it; other tasks go on meanwhile."""
    # Also where there is room at once: whoever publishes without end lets others have their turn.
    await asyncio.sleep(0)
    if not publisher.wait_room(0):
        await _room(publisher)
    return publisher.put(payload, encoding=encoding, captured_ns=captured_ns, attachment=attachment)


async def _room(publisher: Publisher) -> None:
    """Waits until every stream has room."""
    bell = Bell()
    loop = asyncio.get_running_loop()
    while True:
        rung = loop.create_future()
        loop.add_reader(bell.fileno(), _ring, rung)
        try:
            if not bell.arm_room(publisher):
                return
            await asyncio.wait([rung], timeout=_LOOK_AGAIN_S)
        finally:
            loop.remove_reader(bell.fileno())
            bell.disarm()


def _ring(rung: "asyncio.Future[None]") -> None:
    if not rung.done():
        rung.set_result(None)


async def pulled(pull: Pulled) -> AsyncIterator[Sample]:
    """The samples of ``pull``, each waited for on a thread of the loop's pool."""
    while (sample := await asyncio.to_thread(next, pull, None)) is not None:
        yield sample
