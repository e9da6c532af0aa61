"""Invalid calls: each raises at once and names the argument, the value and the remedy."""

import threading
from pathlib import Path

import paceline
import pytest
from conftest import SOON_S
from test_put_and_recv import pair


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"max_hz": "fast"}, TypeError, "max_hz='fast': it must be a number"),
        ({"max_hz": -1}, ValueError, "rate -1 Hz"),
        ({"max_hz": float("nan")}, ValueError, "rate NaN Hz"),
        ({"every": 0}, ValueError, "every 0"),
        ({"every": -1}, TypeError, "every=-1: it must be a whole number"),
        ({"every": 1.5}, TypeError, "every=1.5"),
        ({"size": (0, 10)}, ValueError, "size 0x10"),
        ({"size": "wide"}, TypeError, "size='wide'"),
        ({"size": (1, 2, 3)}, TypeError, r"size=\(1, 2, 3\)"),
        ({"loss": "3/2"}, ValueError, "3"),
        ({"loss": 5}, TypeError, "loss=5"),
        ({"within_ms": 0}, ValueError, "within 0"),
        ({"within_ms": -5}, ValueError, "within_ms=-5"),
        ({"within_ms": float("inf")}, ValueError, "within_ms=inf"),
        ({"queue": 0}, ValueError, "queue of 0"),
        ({"queue": 1 << 40}, ValueError, "queue of"),
        ({"proxy": "moon"}, ValueError, "proxy='moon': it must be one of 'publisher', 'subscriber', 'auto', or 'node:' and a node's name"),
        ({"retransmit": "maybe"}, ValueError, "'go-back-n'"),
        ({"history_samples": 0}, ValueError, "0 samples"),
        ({"history_ms": -1}, ValueError, "history_ms=-1"),
        ({"audio": "8000x99"}, ValueError, "8000 Hz x 99"),
        ({"audio": "8000x999"}, TypeError, "audio='8000x999'"),
        ({"deadline": 5}, TypeError, "deadline"),
        ({"size": "8x8", "audio": "8000x1"}, ValueError, "size and audio are both set"),
    ],
)
def test_invalid_subscriptions_are_refused(
    node: paceline.Node, asked: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        node.subscriber("a", **asked)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"hz": 0}, ValueError, "rate 0 Hz"),
        ({"period_ms": 0}, ValueError, "period"),
        ({"kind": "smell"}, ValueError, "kind='smell'"),
        ({"encoding": 7}, TypeError, "encoding=7: it must be a text"),
        ({"late": "yes"}, TypeError, "late='yes'"),
        ({"bytes_max": -1}, TypeError, "bytes_max=-1"),
        ({"within_ms": 0}, ValueError, "within 0: must be above 0"),
        ({"traffic": (8_000, 10), "bytes_max": 20}, ValueError, "burst of 10 bytes: must be at least"),
        ({"traffic": 5}, TypeError, "traffic=5"),
        ({"hz": 5, "period_ms": 200}, ValueError, "hz and period are both set; set only one of them"),
        ({"encoding": "a/b\x1b[2J"}, ValueError, "contains a control"),
    ],
)
def test_invalid_publishers_are_refused(
    node: paceline.Node, asked: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        node.publisher("a", **asked)  # type: ignore[arg-type]


def test_invalid_tags_are_refused(node: paceline.Node) -> None:
    for tag in ("", "a/*", "@a", "a//b", "a\n", "a\u202eb"):
        with pytest.raises(paceline.PublishError):
            node.publisher(tag)
    with pytest.raises(paceline.SubscribeError):
        node.subscriber("@a")
    with pytest.raises(TypeError):
        node.publisher(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("payload", [None, 5, 1.5, "text", ["a"], {"a": 1}, object()])
def test_payloads_of_the_wrong_type_are_refused(node: paceline.Node, payload: object) -> None:
    publisher, subscriber = pair(node)
    with pytest.raises(TypeError, match="payload"):
        publisher.put(payload)  # type: ignore[arg-type]
    publisher.put(b"and goes on")
    assert bytes(subscriber.recv(SOON_S)) == b"and goes on"


def test_put_many_stops_at_an_invalid_payload(node: paceline.Node) -> None:
    publisher, subscriber = pair(node)
    with pytest.raises(TypeError, match="payload"):
        publisher.put_many([b"1", "2", b"3"])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        publisher.put_many(5)  # type: ignore[arg-type]

    def breaks() -> object:
        yield b"4"
        raise LookupError("the source broke")

    with pytest.raises(LookupError):
        publisher.put_many(breaks())  # type: ignore[arg-type]
    assert [bytes(sample) for sample in subscriber.try_take()] == [b"1", b"4"]


def test_samples_that_are_too_large_are_refused(node: paceline.Node) -> None:
    publisher, subscriber = pair(node)
    with pytest.raises(paceline.PublishError, match="67108865 bytes"):
        publisher.put(bytes((64 << 20) + 1))
    with pytest.raises(paceline.PublishError, match="attachment of 513 bytes"):
        publisher.put(b"", attachment=bytes(513))
    with pytest.raises(OverflowError):
        publisher.put(b"", captured_ns=-1)
    assert subscriber.try_recv() is None


def test_invalid_timeouts_are_refused(node: paceline.Node) -> None:
    subscriber = node.subscriber("a")
    for timeout_s in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="timeout_s"):
            subscriber.recv(timeout_s)
    with pytest.raises(TypeError):
        subscriber.recv("soon")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_samples=0"):
        subscriber.take(0)


def test_conflicting_options_are_refused_everywhere(node: paceline.Node) -> None:
    _, subscriber = pair(node)
    both: dict[str, object] = {"size": "8x8", "audio": "8000x1"}
    for ask in (
        lambda: node.pull("a", **both),  # type: ignore[arg-type]
        lambda: subscriber.change(**both),  # type: ignore[arg-type]
    ):
        with pytest.raises(ValueError, match="size and audio are both set"):
            ask()


def test_names_with_control_characters_are_refused(host: object) -> None:
    for name in ("", "a\nb", "a\u202eb"):
        with pytest.raises(paceline.OpenError, match="1 to 255 bytes"):
            paceline.Node(isolated=True, links=[paceline.Link(name=name, listen=["tcp/127.0.0.1:0"])])
        with pytest.raises(paceline.OpenError, match="1 to 255 bytes"):
            paceline.Node(name=name, isolated=True)


def test_invalid_links_are_refused(host: object) -> None:
    for measured, what in (
        ("auto 5mbit..1mbit", "the minimum 5mbit is above the maximum 1mbit"),
        ("automatic", "measured='automatic'"),
        ("2mbit", "use capacity_bits_per_s"),
    ):
        with pytest.raises(ValueError, match=what):
            link = paceline.Link(name="radio", connect=["tcp/127.0.0.1:1"], measured=measured)
            paceline.Node(isolated=True, links=[link])
    with pytest.raises(ValueError, match="excludes capacity_bits_per_s"):
        link = paceline.Link(name="radio", connect=["tcp/127.0.0.1:1"], measured="auto", capacity_bits_per_s=9)
        paceline.Node(isolated=True, links=[link])
    with pytest.raises(paceline.OpenError, match="radio"):
        paceline.Node(isolated=True, links=[paceline.Link(name="radio")])
    with pytest.raises(paceline.OpenError, match="insecure"):
        paceline.Node(isolated=True, links=[paceline.Link(name="radio", listen=["tcp/0.0.0.0:0"])])
    with pytest.raises(paceline.OpenError, match="needs tls_cert, tls_key and tls_ca"):
        paceline.Node(isolated=True, links=[paceline.Link(name="radio", listen=["quic/127.0.0.1:0"])])
    with pytest.raises(paceline.OpenError, match="proxy 'moon' must be http://HOST:PORT"):
        link = paceline.Link(name="radio", connect=["tcp/127.0.0.1:1"], proxy="moon", ordered=True)
        paceline.Node(isolated=True, links=[link])
    tls = ("nothing.pem", "nothing.key", "ca.pem")
    with pytest.raises(paceline.OpenError, match="tls_ca ca.pem"):
        link = paceline.Link(name="radio", listen=["quic/127.0.0.1:0"], tls=tls)
        paceline.Node(isolated=True, links=[link])
    with pytest.raises(ValueError, match="policy='luck'"):
        paceline.Node(links=[paceline.Link(name="radio", listen=["tcp/127.0.0.1:0"], policy="luck")])
    with pytest.raises(ValueError):
        paceline.Node(links=[paceline.Link(name="radio", listen=["tcp/127.0.0.1:0"], capacity_bits_per_s=0)])
    with pytest.raises(TypeError, match="links="):
        paceline.Node(links=5)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        paceline.Node(links=["tcp/127.0.0.1:0"])  # type: ignore[list-item]
    with pytest.raises(paceline.OpenError, match="runtime folder"):
        paceline.open(runtime_dir="/dev/null")


def test_every_call_on_a_closed_node_raises(node: paceline.Node) -> None:
    publisher, subscriber = pair(node)
    node.close()
    node.close()
    for use in (
        lambda: publisher.put(b""),
        lambda: publisher.put(b"", wait=True),
        lambda: node.publisher("b"),
        lambda: node.subscriber("b"),
        lambda: node.quotes("b"),
        lambda: node.pull("b"),
        publisher.status,
        subscriber.recv,
        subscriber.try_recv,
        subscriber.status,
        subscriber.take,
    ):
        with pytest.raises(paceline.ClosedError):
            use()
    assert subscriber.closed and list(subscriber) == [] and repr(node).startswith("Node('test'")
    assert publisher.close() in (True, False)
    publisher.close()
    subscriber.close()
    subscriber.close()


def test_closing_ends_the_wait_of_another_thread(node: paceline.Node) -> None:
    _publisher, subscriber = pair(node)
    for close in (subscriber.close, node.close):
        other = node.subscriber("b") if close == node.close else subscriber
        ended: list[BaseException] = []

        def wait(other: paceline.Subscriber = other, ended: list[BaseException] = ended) -> None:
            try:
                other.recv()
            except paceline.ClosedError as error:
                ended.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        close()
        thread.join(SOON_S)
        assert not thread.is_alive() and len(ended) == 1


def test_many_threads_use_one_publisher_and_one_subscriber(node: paceline.Node) -> None:
    publisher, subscriber = pair(node, queue=65_536)
    got: list[int] = []

    def put() -> None:
        for _ in range(500):
            publisher.put(b"x", wait=True)

    def read() -> None:
        for sample in subscriber:
            got.append(sample.seq)

    readers = [threading.Thread(target=read) for _ in range(3)]
    writers = [threading.Thread(target=put) for _ in range(4)]
    for thread in readers + writers:
        thread.start()
    for thread in writers:
        thread.join(SOON_S)
    node.close()
    for thread in readers:
        thread.join(SOON_S)
        assert not thread.is_alive()
    assert sorted(got) == list(range(2_000))


def test_a_callback_exception_is_reported_and_delivery_continues(
    node: paceline.Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    publisher, subscriber = pair(node)
    told: list[object] = []
    got: list[int] = []
    names: set[str] = set()
    monkeypatch.setattr(sys, "unraisablehook", lambda hook: told.append(hook.exc_value))
    done = threading.Event()

    def deliver(sample: paceline.Sample) -> None:
        names.add(threading.current_thread().name)
        got.append(sample.seq)
        if sample.seq == 1:
            raise LookupError("of the callback")
        if sample.seq == 2:
            done.set()

    with paceline.Callback(subscriber, deliver) as callback:
        publisher.put_many([b"", b"", b""])
        assert done.wait(SOON_S)
    assert got == [0, 1, 2] and callback.failures == 1
    assert [str(error) for error in told] == ["of the callback"] and names == {f"paceline-{subscriber.id}"}
    with pytest.raises(TypeError, match="deliver=5"):
        paceline.Callback(subscriber, 5)  # type: ignore[arg-type]


def test_a_callback_closes_its_own_subscription(node: paceline.Node) -> None:
    publisher, subscriber = pair(node)
    done = threading.Event()

    def deliver(sample: paceline.Sample) -> None:
        callback.close()
        done.set()

    callback = paceline.Callback(subscriber, deliver)
    publisher.put(b"")
    assert done.wait(SOON_S) and subscriber.closed


def test_threads_that_read_and_wait_during_close_do_not_block_each_other(node: paceline.Node) -> None:
    for _ in range(25):
        subscriber = node.subscriber("a")

        def look(subscriber: paceline.Subscriber = subscriber) -> None:
            while True:
                try:
                    subscriber.try_recv()
                except paceline.ClosedError:
                    return

        def wait(subscriber: paceline.Subscriber = subscriber) -> None:
            assert list(subscriber) == []

        threads = [threading.Thread(target=target, daemon=True) for target in (look, wait, look, wait)]
        for thread in threads:
            thread.start()
        subscriber.close()
        for thread in threads:
            thread.join(SOON_S)
            assert not thread.is_alive()


def test_a_wrong_policy_or_token_is_named(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("[[rule]]\npeers = ['operator']\nrate = 'fast'\n")
    with pytest.raises(paceline.OpenError, match=r"rule 1: rate = .fast.: must be a rate"):
        paceline.Node(isolated=True, policy=policy)
    with pytest.raises(paceline.OpenError, match=r"token .*none: No such file"):
        paceline.Node(isolated=True, token=tmp_path / "none")
    policy.write_text("[[rule]]\npeers = ['operator']\nrate = '30Hz'\n")
    with paceline.Node(isolated=True, policy=policy) as node:
        camera = node.publisher("camera")
        with node.subscriber("camera", encrypted=True) as pictures:
            camera.put(b"picture")
            assert next(iter(pictures)).payload == b"picture"
