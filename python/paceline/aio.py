"""Asynchronous samples: ``async for sample in subscriber`` and ``await publisher.put_async(…)``.

Waiting for samples or for room does not block a thread.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from ._native import Bell, Publisher, Pulled, PutReport, Sample, Subscriber, World, WorldEvent
from .errors import ClosedError

__all__ = ["events", "pulled", "put", "recv", "samples"]

# Closing a stream or world does not notify, so look again after this time.
_LOOK_AGAIN_S = 0.1
# Yield to other tasks after this many samples or events, even if more are queued.
_TURN_SAMPLES = 64


async def samples(subscriber: Subscriber) -> AsyncIterator[Sample]:
    """Yields the samples of ``subscriber`` until it is closed."""
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
    """Returns the next sample. Limit the wait with :func:`asyncio.timeout`."""
    sample = subscriber.try_recv()
    return await _next(Bell(), subscriber) if sample is None else sample


async def _next(bell: Bell, subscriber: Subscriber) -> Sample:
    """Waits for the next sample and returns it."""
    while True:
        with _rung(bell) as rung:
            bell.arm(subscriber)
            # A sample may have arrived before the bell was armed.
            if (sample := subscriber.try_recv()) is not None:
                return sample
            await rung
        if (sample := subscriber.try_recv()) is not None:
            return sample


async def events(world: World) -> AsyncIterator[WorldEvent]:
    """Yields the events of ``world`` until it is closed."""
    bell = Bell()
    given = 0
    while True:
        try:
            if (event := world.try_event()) is None:
                with _rung(bell) as rung:
                    bell.arm_world(world)
                    # An event may have arrived before the bell was armed.
                    if (event := world.try_event()) is None:
                        await asyncio.wait([rung], timeout=_LOOK_AGAIN_S)
        except ClosedError:
            return
        if event is None:
            continue
        yield event
        given += 1
        if given % _TURN_SAMPLES == 0:
            await asyncio.sleep(0)


async def put(
    publisher: Publisher,
    payload: Any,
    *,
    encoding: str | None = None,
    captured_ns: int | None = None,
    attachment: bytes | None = None,
) -> PutReport:
    """Publishes one sample once every stream has room for it. Other tasks run meanwhile."""
    # Yield even if there is room, so that a task that publishes in a loop does not starve the
    # others.
    await asyncio.sleep(0)
    if not publisher.wait_room(0):
        await _room(publisher)
    return publisher.put(payload, encoding=encoding, captured_ns=captured_ns, attachment=attachment)


async def _room(publisher: Publisher) -> None:
    """Waits until every stream has room."""
    bell = Bell()
    while True:
        with _rung(bell) as rung:
            if not bell.arm_room(publisher):
                return
            await asyncio.wait([rung], timeout=_LOOK_AGAIN_S)


@contextmanager
def _rung(bell: Bell) -> "Iterator[asyncio.Future[None]]":
    """Yields a future that ends when the bell rings, and disarms the bell afterwards."""
    loop = asyncio.get_running_loop()
    rung: asyncio.Future[None] = loop.create_future()
    loop.add_reader(bell.fileno(), _ring, rung)
    try:
        yield rung
    finally:
        loop.remove_reader(bell.fileno())
        bell.disarm()


def _ring(rung: "asyncio.Future[None]") -> None:
    if not rung.done():
        rung.set_result(None)


async def pulled(pull: Pulled) -> AsyncIterator[Sample]:
    """Yields the samples of ``pull``. A thread of the loop's pool waits for each."""
    while (sample := await asyncio.to_thread(next, pull, None)) is not None:
        yield sample
