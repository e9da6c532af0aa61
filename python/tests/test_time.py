"""Delivery by time: stale commands, order and spacing."""

import time

import paceline
import pytest
from conftest import SOON_S


def test_a_silent_command_is_followed_by_zeros(node: paceline.Node) -> None:
    subscriber = node.subscriber("arm", fresh_within_ms=200, otherwise="zero")
    publisher = node.publisher("arm")
    assert publisher.wait_matching(SOON_S)
    publisher.put(b"abc")
    command = subscriber.recv(SOON_S)
    assert bytes(command) == b"abc" and not command.safe
    assert command.fresh_ms is not None and command.fresh_ms <= 200
    stop = subscriber.recv(SOON_S)
    assert bytes(stop) == bytes(3) and stop.safe and stop.fresh_ms is None
    silent = [event for event in subscriber.events() if isinstance(event, paceline.Silent)]
    assert [(event.tag, event.seq) for event in silent] == [("arm", 0)]


def test_a_sample_in_a_time_buffer_waits(node: paceline.Node) -> None:
    subscriber = node.subscriber("arm", ordered="time", hold_ms=50, hold_factor=0.5, hold_late="drop")
    publisher = node.publisher("arm")
    assert publisher.wait_matching(SOON_S)
    began = time.monotonic()
    publisher.put(b"x")
    sample = subscriber.recv(SOON_S)
    assert time.monotonic() - began >= 0.05 and sample.order == "in_order"


def test_the_members_of_a_group_wait_for_the_same_instant(node: paceline.Node) -> None:
    members = [node.subscriber(tag, sync_group="py", sync_delay_ms=60) for tag in ("mic", "camera")]
    publishers = [node.publisher(tag) for tag in ("mic", "camera")]
    assert all(publisher.wait_matching(SOON_S) for publisher in publishers)
    for publisher in publishers:
        publisher.put(b"x")
    ages = [member.recv(SOON_S).age_ms for member in members]
    assert min(ages) >= 59
    with pytest.raises(paceline.SubscribeError, match="other members have 60ms"):
        node.subscriber("mic", sync_group="py", sync_delay_ms=70)


def test_stamps_increase_and_an_unknown_error_orders_nothing(node: paceline.Node) -> None:
    clock = node.clock()
    assert clock.status == "unsynchronised"
    first, second = clock.stamp(), clock.stamp()
    assert first.ns < second.ns
    now = clock.now()
    assert now.error_us is None and now.earliest_ns <= now.ns <= now.latest_ns
    assert not first.definitely_before(second)
    assert not clock.wait_until_past(now.ns, 0.01)
    with pytest.raises(ValueError, match="timeout_s"):
        clock.wait_until_past(now.ns, -1)


@pytest.mark.parametrize(
    ("asked", "part"),
    [
        ({"fresh_within_ms": 0}, "from 1 µs to 1 h"),
        ({"fresh_within_ms": 100, "otherwise": "brake"}, "must be hold or zero"),
        ({"otherwise": "zero"}, "add the age limit"),
        ({"hold_ms": 5}, "add ordered"),
        ({"ordered": "size"}, "must be time, publisher or none"),
        ({"ordered": "time", "hold_ms": 1e9}, "from 1 µs to 60 s"),
        ({"ordered": "time", "hold_samples": 0}, "from 1 to 65536"),
        ({"ordered": "time", "spacing_ms": 10}, "both set"),
        ({"max_jitter_ms": 2}, "add within"),
        ({"sync_delay_ms": 20}, "add the name of the group"),
        ({"sync_group": "a", "sync_delay_ms": 0}, "above 0 and at most 60 s"),
        ({"sync_group": "a", "within_ms": 300}, "make the delay at least as long"),
    ],
)
def test_wrong_requests_are_named(node: paceline.Node, asked: dict[str, object], part: str) -> None:
    with pytest.raises((ValueError, paceline.SubscribeError), match=part):
        node.subscriber("arm", **asked)  # type: ignore[arg-type]
