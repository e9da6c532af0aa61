"""Grants and refusals."""

import threading

import paceline
import pytest
from conftest import SOON_S, wait_until

Thin = tuple[paceline.Node, paceline.Node]


def test_a_refusal_is_an_exception_whose_offer_is_granted(thin: Thin) -> None:
    robot, operator = thin
    # On a busy host a sample may be late; ``late=True`` delivers it all the same.
    lidar = robot.publisher("lidar", hz=20, bytes_max=20_000, late=True)
    wait_until("the lidar is known", lambda: operator.quotes("lidar"))
    with pytest.raises(paceline.Refused) as caught:
        operator.subscriber("lidar", within_ms=300, require=True)
    no = caught.value
    assert (no.node, no.link, no.reason) == ("robot", "radio", "capacity")
    assert no.needed_bytes_per_s > no.available_bytes_per_s
    assert "radio" in str(no) and no.offer == no.offers[0] and set(no.offer) <= {"max_hz", "within_ms", "loss"}
    scans = operator.subscriber("lidar", **{"within_ms": 300, **no.offer}, require=True)
    assert lidar.wait_matching(SOON_S)
    lidar.put(bytes(20_000))
    assert len(scans.recv(SOON_S)) == 20_000
    events = scans.events()
    grants = [event for event in events if isinstance(event, paceline.Grant)]
    assert grants and not any(isinstance(event, paceline.Refusal) for event in events), events
    hop = grants[-1].hops[0]
    assert (hop.node, hop.link, hop.capacity_bits_per_s) == ("robot", "radio", 1_000_000)
    assert grants[-1].within_ms == 300 and 0 < grants[-1].bound_ms <= 300 and hop.bytes_per_s > 0


def test_an_elastic_contract_takes_the_step_that_fits(thin: Thin) -> None:
    robot, operator = thin
    lidar = robot.publisher("lidar", hz=20, bytes_max=10_000, late=True)
    wait_until("the lidar is known", lambda: operator.quotes("lidar"))
    scans = operator.subscriber("lidar", max_hz=20, min_hz=2, within_ms=300, importance=20)
    events: list[object] = []

    def has(kind: type[object]) -> bool:
        events.extend(scans.events())
        return any(isinstance(event, kind) for event in events)

    wait_until("it is reduced", lambda: has(paceline.Adapted))
    wait_until("it is granted", lambda: has(paceline.Grant))
    (adapted,) = [event for event in events if isinstance(event, paceline.Adapted)]
    (grant,) = [event for event in events if isinstance(event, paceline.Grant)]
    assert adapted.reason == "refused" and 0 < adapted.step < adapted.steps
    assert adapted.max_hz == grant.max_hz and 2 <= (grant.max_hz or 0) < 20
    assert "link 'radio' of 'robot'" in str(adapted) and adapted.revision == grant.revision
    assert not any(isinstance(event, paceline.Refusal) for event in events + lidar.events())
    with pytest.raises(paceline.SubscribeError, match="max_hz"):
        operator.subscriber("lidar", min_hz=2, within_ms=300)
    with pytest.raises(paceline.SubscribeError, match="importance 101"):
        operator.subscriber("lidar", within_ms=300, importance=101)
    with pytest.raises(paceline.SubscribeError, match="smaller sizes"):
        operator.subscriber("lidar", size=(320, 240), or_sizes=[(640, 480)], within_ms=300)


def test_declared_traffic_is_reserved_instead_of_the_peak(thin: Thin) -> None:
    robot, operator = thin
    film = robot.publisher("film", hz=20, bytes_max=20_000, traffic=(300_000, 30_000))
    wait_until("the film is known", lambda: operator.quotes("film"))
    pictures = operator.subscriber("film", within_ms=900, require=True)
    assert film.wait_matching(SOON_S)
    film.put(bytes(20_000))
    assert len(pictures.recv(SOON_S)) == 20_000
    grant = next(event for event in pictures.events() if isinstance(event, paceline.Grant))
    assert not grant.learned and 37_500 <= grant.hops[0].bytes_per_s < 100_000


def test_a_later_publisher_is_refused_in_the_call_that_waits_for_samples(thin: Thin) -> None:
    robot, operator = thin
    waits = operator.subscriber("lidar", within_ms=100, require=True)
    bears = operator.subscriber("lidar", within_ms=100)
    _lidar = robot.publisher("lidar", hz=20, bytes_max=20_000)
    with pytest.raises(paceline.Refused):
        waits.recv(SOON_S)
    events: list[object] = []
    wait_until("the refusal arrives", lambda: events.extend(bears.events()) or any(isinstance(e, paceline.Refusal) for e in events))
    assert bears.try_recv() is None


@pytest.mark.parametrize("require", [False, True])
def test_a_refused_change_leaves_the_stream_as_it_was(thin: Thin, require: bool) -> None:
    robot, operator = thin
    pose = robot.publisher("pose", hz=500, bytes_max=1_000)
    wait_until("the pose is known", lambda: operator.quotes("pose"))
    poses = operator.subscriber("pose", max_hz=5, within_ms=2_000, require=require)
    events: list[object] = []

    def has_event(kind: type) -> bool:
        events.extend(poses.events())
        return any(isinstance(event, kind) for event in events)

    wait_until("it is granted", lambda: has_event(paceline.Grant))
    poses.change(every=1)
    wait_until("the change is refused", lambda: has_event(paceline.ChangeRefused))
    refused = next(event for event in events if isinstance(event, paceline.ChangeRefused))
    assert refused.within_ms == 2_000 and refused.refusals[0].reason == "capacity"
    pose.put(b"still")
    assert bytes(poses.recv(SOON_S)) == b"still"


def test_a_publisher_without_a_rate_gets_no_contract(thin: Thin) -> None:
    robot, operator = thin
    log = robot.publisher("log")
    waits = operator.subscriber("log", within_ms=100, require=True)
    bears = operator.subscriber("log", within_ms=100)
    with pytest.raises(paceline.Refused, match="its publishing rate is unknown") as caught:
        waits.recv(SOON_S)
    assert (caught.value.reason, caught.value.offers) == ("rate_unknown", [])
    assert log.wait_matching(SOON_S)
    log.put(b"line")
    assert bytes(bears.recv(SOON_S)) == b"line"
    assert any(isinstance(event, paceline.BestEffort) for event in bears.events())


def test_a_publisher_receives_feedback_of_its_subscribers(thin: Thin) -> None:
    robot, operator = thin
    pose = robot.publisher("pose", hz=10, bytes_max=100, late=True)
    gets = operator.subscriber("pose", within_ms=200, loss="1/10")
    lacks = operator.subscriber("pose", within_ms=1)
    assert pose.wait_matching(SOON_S)
    pose.put(b"here")
    assert gets.recv(SOON_S).seq == 0
    by_id: dict[str, paceline.Feedback] = {}

    def both_are_notified() -> bool:
        by_id.update({one.subscription: one for one in pose.feedback(timeout_s=SOON_S)})
        return gets.id in by_id and by_id[gets.id].grant is not None and by_id[lacks.id].refusal is not None

    wait_until("one is granted, the other refused", both_are_notified)
    got = by_id[gets.id]
    assert got.measured is not None and got.measured.delivered == 1 and got.measured.bytes == 4
    assert (got.node, got.within_ms, got.loss, got.refusal) == ("operator", 200, (1, 10), None)
    assert got.measured.age_mean_ms is not None and got.measured.age_mean_ms >= 0
    assert by_id[lacks.id].grant is None
    events = pose.events()
    assert {event.subscription for event in events if isinstance(event, paceline.Grant)} == {gets.id}
    gets.close()
    wait_until("the withdrawal arrives", lambda: any(isinstance(e, paceline.Withdrawn) and e.other == gets.id for e in pose.events()))


def test_a_quote_reserves_nothing(thin: Thin) -> None:
    robot, operator = thin
    _pose = robot.publisher("pose", hz=10, bytes_max=100)
    wait_until("the pose is known", lambda: operator.quotes("pose"))
    yes = operator.quotes("pose", within_ms=100)[0]
    assert yes.granted and yes.complete and yes.refusal is None and yes.grant is not None
    assert (yes.tag, yes.node) == ("pose", "robot") and yes.grant.bound_ms <= 100
    no = operator.quotes("pose", within_ms=1)[0]
    assert not no.granted and no.refusal is not None and no.refusal.reason in ("delay", "deadlines")
    offered = operator.quotes("pose", **{"within_ms": 1, **no.refusal.offer})[0]
    assert offered.granted, offered.refusal
    untied = operator.quotes("pose", within_ms=100, with_tag="cmd")[0]
    assert untied.refusal is not None and untied.refusal.reason == "opposite" and not untied.granted
    _cmd = operator.publisher("cmd", hz=10, bytes_max=100)
    _steering = robot.subscriber("cmd", within_ms=100)
    wait_until("both halves fit", lambda: operator.quotes("pose", within_ms=100, with_tag="cmd")[0].granted)
    both = operator.quotes("pose", within_ms=100, with_tag="cmd", idle_s=None)[0]
    assert both.opposite_refusal is None and both.opposite_grant is not None and both.opposite_grant.bound_ms <= 100


def test_a_larger_capacity_grants_a_refused_request(thin: Thin) -> None:
    robot, operator = thin
    _lidar = robot.publisher("lidar", hz=20, bytes_max=20_000)
    scans = operator.subscriber("lidar", within_ms=100)
    wait_until("it is refused", lambda: any(isinstance(e, paceline.Refusal) for e in scans.events()))
    robot.set_capacity("radio", 20_000_000)
    wait_until("it is granted", lambda: any(isinstance(e, paceline.Grant) for e in scans.events()))
    with pytest.raises(ValueError, match="satellite"):
        robot.set_capacity("satellite", 1_000_000)


def test_samples_are_delivered_at_the_requested_rate(node: paceline.Node) -> None:
    few = node.subscriber("a", max_hz=10)
    third = node.subscriber("a", every=3)
    publisher = node.publisher("a", hz=30)
    assert publisher.wait_matching(SOON_S)
    period = 1_000_000_000 // 30
    for n in range(30):
        # Rates follow the capture time, so the test does not have to wait.
        publisher.put(b"", captured_ns=1_000_000_000_000 + n * period)
    assert [sample.seq % 3 for sample in third.try_take()] == [0] * 10
    assert len(few.try_take()) == 10


def test_a_request_changes_while_samples_arrive(node: paceline.Node) -> None:
    subscriber = node.subscriber("a", every=2)
    publisher = node.publisher("a")
    assert publisher.wait_matching(SOON_S)
    publisher.put_many([b""] * 4)
    assert len(subscriber.try_take()) == 2
    subscriber.change(reset=True, within_ms=5_000, loss="1/10")
    changed = [event for event in subscriber.events() if isinstance(event, paceline.Changed)]
    assert [(event.within_ms, event.loss) for event in changed] == [(5_000, (1, 10))]
    got = 0

    def all_arrived() -> bool:
        nonlocal got
        publisher.put_many([b""] * 4)
        got = len(subscriber.try_take())
        return got == 4

    wait_until("it gets all", all_arrived)
    with pytest.raises(TypeError, match="there is no keyword 'queue'"):
        subscriber.change(queue=5)  # type: ignore[call-arg]
    with pytest.raises(paceline.SubscribeError, match="every 0"):
        subscriber.change(every=0)
    subscriber.close()
    with pytest.raises(paceline.ChangeError, match="it has ended"):
        subscriber.change(every=1)


def test_a_subscription_of_another_node_is_changed(thin: Thin) -> None:
    robot, operator = thin
    subscriber = operator.subscriber("a", every=2)
    publisher = robot.publisher("a")
    assert publisher.wait_matching(SOON_S)
    wait_until("it is known", robot.subscriptions)
    (view,) = robot.subscriptions()
    assert (view.node, view.pattern, view.form, view.proxy) == ("operator", "a", "1 in 2", "publisher")
    assert (view.id, view.within_ms, view.loss) == (subscriber.id, None, None)
    robot.change(view, max_hz=7)
    events: list[object] = []
    wait_until("the refusal arrives", lambda: events.extend(subscriber.events()) or [e for e in events if isinstance(e, paceline.Changed)])
    wait_until("everybody knows", lambda: [view.form for view in robot.subscriptions()] == ["7 Hz"])
    robot.change(view.id, reset=True)
    wait_until("everybody knows", lambda: [view.form for view in robot.subscriptions()] == ["all"])
    operator.change(subscriber, every=3)
    with pytest.raises(paceline.SubscribeError, match="every 0"):
        robot.change(view, every=0)
    with pytest.raises(ValueError, match="subscription='a'"):
        robot.change("a", every=1)
    subscriber.close()
    wait_until("it is gone", lambda: not robot.subscriptions())
    with pytest.raises(paceline.ChangeError, match="it has ended"):
        robot.change(view, every=1)


def test_a_node_buffers_samples_of_other_publishers(node: paceline.Node) -> None:
    buffer = node.buffer("log/**", every=2, history_samples=3)
    publisher = node.publisher("log/a")
    assert publisher.wait_matching(SOON_S)
    publisher.put_many([bytes([n]) for n in range(10)])
    wait_until("three are buffered", lambda: buffer.held == {"samples": 3, "bytes": 3})
    assert [bytes(sample)[0] for sample in node.pull("log/a", newest=9, timeout_s=SOON_S)] == [4, 6, 8]
    assert buffer.pattern == "log/**" and buffer.id in {view.id for view in node.subscriptions()}
    with pytest.raises(paceline.SubscribeError, match="every 0"):
        node.buffer("log/**", every=0)
    with pytest.raises(paceline.Error), node.buffer("a//b"):
        pass
    with pytest.raises(ValueError):
        node.buffer("log/**", history_samples=0)
    with buffer:
        pass
    with pytest.raises(paceline.ClosedError):
        _ = buffer.held
    with pytest.raises(paceline.PullError, match="no node buffers 'log/a'"):
        node.pull("log/a", timeout_s=SOON_S)


def test_past_samples_are_pulled(node: paceline.Node) -> None:
    publisher = node.publisher("a", history_samples=100)
    publisher.put_many([bytes([n]) for n in range(20)])
    wait_until("all are buffered", lambda: publisher.held == {"samples": 20, "bytes": 20})
    pulled = node.pull("a", newest=5, timeout_s=SOON_S)
    assert pulled.found == 5 and pulled.summary is None
    assert [bytes(sample)[0] for sample in pulled] == [15, 16, 17, 18, 19]
    summary = pulled.summary
    assert summary is not None and (summary.found, summary.delivered, summary.bytes) == (5, 5, 5)
    assert summary.missing == [] and summary.nodes[0][1:] == ("test", 5) and not summary.more
    assert [sample.seq for sample in node.pull("a", seq=(3, 4), timeout_s=SOON_S)] == [3, 4]
    assert [sample.seq for sample in node.pull("a", nth=2, timeout_s=SOON_S)] == [18]
    last = next(iter(node.pull("a")))
    assert [s.seq for s in node.pull("a", from_ns=last.captured_ns, to_ns=last.captured_ns)][-1] == 19


def test_a_pull_orders_a_buffer_at_a_node(node: paceline.Node) -> None:
    publisher = node.publisher("a")
    is_over = threading.Event()

    def publish() -> None:
        while not is_over.wait(0.01):
            publisher.put(b"x")

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        # More than are pulled: new samples replace the oldest ones of the buffer meanwhile.
        pulled = node.pull("a", newest=3, hold_at="test", samples=20, timeout_s=SOON_S)
        assert len(list(pulled)) == 3
        with pytest.raises(paceline.PullError, match="10001 samples: must be from 1 to 10000"):
            node.pull("a", hold_at="test", samples=10_001, timeout_s=SOON_S)
        with pytest.raises(paceline.PullError, match="no node 'mast'"):
            node.pull("a", hold_at="mast", timeout_s=1)
    finally:
        is_over.set()
        thread.join()
    with pytest.raises(ValueError, match="samples needs hold_at"):
        node.pull("a", samples=3)


def test_an_empty_pull_reports_the_reason(node: paceline.Node) -> None:
    with pytest.raises(paceline.PullError, match="no node buffers 'nobody'"):
        node.pull("nobody", timeout_s=SOON_S)
    with pytest.raises(ValueError, match="not several"):
        node.pull("a", newest=1, nth=1)
    with pytest.raises(ValueError):
        node.pull("a", seq=(4, 3))


def test_a_pull_is_an_async_iterator(node: paceline.Node) -> None:
    import asyncio

    publisher = node.publisher("a", history_samples=10)
    publisher.put_many([b"x"] * 3)
    wait_until("all are buffered", lambda: publisher.held == {"samples": 3, "bytes": 3})

    async def read() -> list[int]:
        return [sample.seq async for sample in node.pull("a", newest=3, timeout_s=SOON_S)]

    assert asyncio.run(asyncio.wait_for(read(), SOON_S)) == [0, 1, 2]


def test_a_spare_needs_a_second_path(thin: Thin) -> None:
    robot, operator = thin
    _pose = robot.publisher("pose", hz=10, bytes_max=100)
    wait_until("the pose is known", lambda: operator.quotes("pose"))
    answer = operator.quotes("pose", within_ms=100, spare=True)[0]
    assert answer.refusal is not None and answer.refusal.spare and answer.refusal.reason == "no_second_path"
    assert answer.refusal.link == "radio" and not answer.granted
    plain = operator.quotes("pose", within_ms=100)[0]
    assert plain.grant is not None and plain.grant.spare == []
    with pytest.raises(ValueError, match="spare without a contract"):
        operator.subscriber("pose", spare=True)
    with pytest.raises(paceline.Refused, match="no spare: every path crosses link 'radio'"):
        operator.subscriber("pose", within_ms=100, spare=True, require=True)
