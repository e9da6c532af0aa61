"""Publishing and receiving samples."""

import asyncio
import threading

import paceline
import paceline.aio
import pytest
from conftest import SOON_S, wait_until


def pair(node: paceline.Node, tag: str = "a", **asked: object) -> tuple[paceline.Publisher, paceline.Subscriber]:
    subscriber = node.subscriber(tag, **asked)  # type: ignore[arg-type]
    publisher = node.publisher(tag)
    assert publisher.wait_matching(SOON_S)
    return publisher, subscriber


def test_a_sample_has_all_attributes_of_the_publication(node: paceline.Node) -> None:
    publisher, subscriber = pair(node, "robot/log")
    put = publisher.put(b"hello", encoding="text/plain", captured_ns=7, attachment=b"beside")
    assert (put.seq, put.taken, put.dropped) == (0, 1, 0)
    sample = subscriber.recv(SOON_S)
    assert bytes(sample) == sample.payload == b"hello" and len(sample) == 5
    assert (sample.tag, sample.seq, sample.captured_ns) == ("robot/log", 0, 7)
    assert (sample.encoding, sample.kind, sample.late) == ("text/plain", "data", False)
    assert sample.attachment == b"beside" and sample.publisher == publisher.id
    assert sample.age_ms >= 0 and "robot/log" in repr(sample)
    assert sample.captured_error_us is None


def test_any_buffer_is_published_in_the_order_of_its_elements(node: paceline.Node) -> None:
    import array

    publisher, subscriber = pair(node)
    large = bytes(range(256)) * 64
    for payload in (b"", b"x", bytearray(b"ab"), memoryview(b"abcd")[::2], array.array("H", [1, 2]), large):
        publisher.put(payload)
        assert bytes(subscriber.recv(SOON_S)) == memoryview(payload).tobytes()
    kept = subscriber.try_recv()
    assert kept is None
    publisher.put(large)
    again = subscriber.recv(SOON_S)
    publisher.put(again.payload)
    assert subscriber.recv(SOON_S).payload == large


def test_a_payload_cannot_be_written(node: paceline.Node) -> None:
    publisher, subscriber = pair(node)
    publisher.put(b"fixed")
    payload = subscriber.recv(SOON_S).payload
    assert payload.readonly
    with pytest.raises(TypeError):
        payload[0] = 0


def test_iteration_ends_with_the_subscription_after_the_queued_samples(node: paceline.Node) -> None:
    publisher, subscriber = pair(node)
    publisher.put_many([b"1", b"2", b"3"])
    wait_until("all have arrived", lambda: subscriber.status().delivered == 3)
    node.close()
    assert [bytes(sample) for sample in subscriber] == [b"1", b"2", b"3"]
    with pytest.raises(paceline.ClosedError):
        subscriber.recv()


def test_take_returns_several_samples(node: paceline.Node) -> None:
    publisher, subscriber = pair(node)
    assert subscriber.try_take() == []
    publisher.put_many([bytes([n]) for n in range(10)])
    taken: list[int] = []
    while len(taken) < 10:
        taken += [sample.seq for sample in subscriber.take(4, timeout_s=SOON_S)]
    assert taken == list(range(10))


def test_unread_samples_are_dropped_and_counted(node: paceline.Node) -> None:
    publisher, subscriber = pair(node, queue=2)
    publisher.put_many([b"x"] * 5)
    wait_until("three were dropped", lambda: subscriber.dropped == {"subscriber_full": 3})
    assert subscriber.missing == 3
    assert [sample.seq for sample in subscriber.try_take()] == [3, 4]


def test_waiting_does_not_block_other_threads(node: paceline.Node) -> None:
    publisher, subscriber = pair(node)
    timer = threading.Timer(0.1, lambda: publisher.put(b"from another thread"))
    timer.start()
    assert bytes(subscriber.recv(SOON_S)) == b"from another thread"


def test_a_timeout_is_a_python_timeout_error(node: paceline.Node) -> None:
    subscriber = node.subscriber("nobody")
    with pytest.raises(TimeoutError):
        subscriber.recv(0)
    with pytest.raises(paceline.Timeout):
        subscriber.take(timeout_s=0.01)
    assert not node.publisher("nowhere").wait_matching(0.01)


def test_async_iteration_waits_without_a_thread(node: paceline.Node) -> None:
    publisher, subscriber = pair(node)
    before = threading.active_count()

    async def read() -> list[bytes]:
        got = []
        async for sample in subscriber:
            got.append(bytes(sample))
            assert threading.active_count() == before
            if len(got) == 200:
                break
        return got

    async def write() -> None:
        for n in range(200):
            publisher.put(n.to_bytes())
            if n % 50 < 10:
                await asyncio.sleep(0.001)

    async def both() -> list[bytes]:
        reading = asyncio.create_task(read())
        await write()
        return await asyncio.wait_for(reading, SOON_S)

    # All 200 arrive: a queue of 64 covers the samples written between two reads.
    assert asyncio.run(both()) == [n.to_bytes() for n in range(200)]


def test_an_async_put_waits_for_room_without_blocking_other_tasks(thin: tuple[paceline.Node, paceline.Node]) -> None:
    robot, operator = thin
    subscriber = operator.subscriber("bulk", queue=4096)
    publisher = robot.publisher("bulk", late=True)
    assert publisher.wait_matching(SOON_S)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    async def write() -> None:
        ticking = asyncio.create_task(tick())
        # More samples than a stream queues, faster than 1 Mbit/s carries them, so the task has to
        # wait.
        for n in range(2_000):
            put = await publisher.put_async(n.to_bytes(100), encoding="x/y", attachment=b"a")
            assert (put.seq, put.dropped) == (n, 0)
        ticking.cancel()

    asyncio.run(asyncio.wait_for(write(), 3 * SOON_S))
    assert ticks > 5, "other tasks had their turns"
    got = [subscriber.recv(SOON_S) for _ in range(2_000)]
    assert [int.from_bytes(bytes(sample)) for sample in got] == list(range(2_000))
    assert (got[0].encoding, got[0].attachment) == ("x/y", b"a")
    publisher.close()
    with pytest.raises(paceline.ClosedError):
        asyncio.run(_one(publisher))


async def _one(publisher: paceline.Publisher) -> None:
    await publisher.put_async(b"x")


def test_async_code_receives_an_empty_sample(node: paceline.Node) -> None:
    publisher, subscriber = pair(node)
    publisher.put(b"")
    assert len(asyncio.run(asyncio.wait_for(paceline.aio.recv(subscriber), SOON_S))) == 0


def test_async_iteration_ends_with_the_node(node: paceline.Node) -> None:
    _publisher, subscriber = pair(node)

    async def read() -> int:
        asyncio.get_running_loop().call_later(0.05, node.close)
        return sum([1 async for _ in subscriber])

    assert asyncio.run(asyncio.wait_for(read(), SOON_S)) == 0


def test_a_publisher_reports_its_samples_and_sends_them_before_it_ends(node: paceline.Node) -> None:
    publisher, subscriber = pair(node)
    with publisher:
        publisher.put(b"x", wait=True)
        wait_until("it is counted", lambda: publisher.status().published == 1)
        assert publisher.status().matching and publisher.wait_room(SOON_S)
    with pytest.raises(paceline.ClosedError):
        publisher.put(b"y")
    assert subscriber.recv(SOON_S).seq == 0


def test_late_subscribers_receive_a_latched_sample_first(node: paceline.Node) -> None:
    mode = node.publisher("robot/mode", latch=True)
    mode.put(b"idle")
    mode.put(b"drive")
    for _ in range(2):
        late = node.subscriber("robot/mode")
        sample = late.recv(SOON_S)
        assert (bytes(sample), sample.seq, sample.kind) == (b"drive", 1, "state")
    mode.put(b"halt")
    assert bytes(late.recv(SOON_S)) == b"halt"
