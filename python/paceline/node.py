"""Nodes and links. Each keyword argument corresponds to the command-line flag of the same name."""

import os
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

from . import _native
from ._native import Buffer, Quote, Publisher, Pulled, Subscriber, SubscriptionView, World

__all__ = ["Link", "Node", "close_all", "open"]

_Pair = tuple[int, int] | str
_Kind = Literal["data", "state", "picture", "audio", "video"]
# publisher, subscriber, auto, or node: and a name
_Proxy = str
_Retransmit = Literal["none", "selective", "go-back-n"]

# Nodes to close before the interpreter exits.
_open: "weakref.WeakSet[Node]" = weakref.WeakSet()


@dataclass(frozen=True, kw_only=True)
class Link:
    """One link of a node: endpoints that share one capacity and one scheduler.

    >>> paceline.Link(name="radio", connect=["tcp/10.0.0.2:7600"], capacity_bits_per_s=20_000_000)

    Endpoints are ``PROTOCOL/ADDRESS`` with the protocol ``quic``, ``tls``, ``tcp`` or
    ``unix`` (``unix/PATH``). The node accepts neighbours at the ``listen`` endpoints and connects to
    those in ``connect``, with retries.
    """

    name: str
    listen: Sequence[str] = ()
    connect: Sequence[str] = ()
    capacity_bits_per_s: int | None = None
    """The capacity on the wire, headers included. Without one the link cannot admit contracts."""
    measured: str | None = None
    """Measures the capacity instead: ``auto``, or within a range ``auto 1mbit..50mbit``. Contracts wait for the first
    measurement for up to 2 s. Defaults to a fixed or no capacity."""
    medium: str | None = None
    """The medium that it shares with other links of this node and of others, such as a radio channel: all of them together
    send no more than its capacity. Defaults to none."""
    medium_bits_per_s: int | None = None
    """The capacity of the medium, equal on all nodes. Defaults to ``capacity_bits_per_s``."""
    medium_access_ms: float = 0
    """The longest time for which a frame waits for the medium, up to 1000. Defaults to 0."""
    policy: str | None = None
    """The scheduling discipline. Defaults to ``vds``."""
    tls: tuple[str, str, str] | None = None
    """The certificate of this node, the key of that, and the authority of the network: paths of files
    in PEM format, such as ``paceline trust issue`` writes. ``quic/`` and ``tls/`` endpoints need them."""
    proxy: str | None = None
    """The HTTP proxy through which the link connects to ``tcp/`` and ``tls/`` endpoints:
    ``http://HOST:PORT`` or ``http://USER:PASSWORD@HOST:PORT``."""
    multicast: str | None = None
    """The multicast groups of the network segment, ``ADDRESS/PREFIX:PORT``, such as ``239.77.0.0/24:7400``: a stream
    that several neighbours receive in the same form is sent once. Defaults to none."""
    ordered: bool = False
    """Delivers everything in order on a ``quic/`` link with a capacity too. Defaults to false."""
    insecure: bool = False
    """Allows listening beyond this host without TLS. Defaults to false."""


class Node(_native.Node):
    """One Paceline engine. It joins this host's node if there is one, and becomes it otherwise.

    >>> with paceline.Node(name="console", links=[link]) as node:
    ...     pictures = node.subscriber("robot/camera")

    ``name`` defaults to the name of the script, with a number if another process has it. ``runtime_dir`` is the folder whose ``node.sock``
    joins the processes of a host; it defaults to ``$PACELINE_RUNTIME_DIR``, then
    ``$XDG_RUNTIME_DIR/paceline``. An ``isolated`` node uses only ``links`` and no socket. A
    ``guest`` joins this host's node but never becomes it.

    ``policy`` is a file with the rights of other nodes at this one, ``token`` a file with a token that
    grants this node rights at others. Both apply again after a change. Without a policy, peers that
    connect with a certificate have no rights.

    Raises :class:`paceline.OpenError` if a link, an endpoint or the folder fails.
    """

    def __new__(
        cls,
        *,
        name: str | None = None,
        runtime_dir: str | os.PathLike[str] | None = None,
        isolated: bool = False,
        guest: bool = False,
        links: Sequence[Link] = (),
        policy: str | os.PathLike[str] | None = None,
        token: str | os.PathLike[str] | None = None,
    ) -> Self:
        asked = {
            "name": name,
            "runtime_dir": runtime_dir,
            "isolated": isolated,
            "guest": guest,
            "links": links,
            "policy": policy,
            "token": token,
        }
        node = super().__new__(cls, asked)
        _open.add(node)
        return node

    def publisher(
        self,
        tag: str,
        *,
        hz: float | None = None,
        period_ms: float | None = None,
        encoding: str | None = None,
        kind: _Kind | None = None,
        late: bool = False,
        latch: bool = False,
        within_ms: float | None = None,
        loss: _Pair | None = None,
        picture_size: _Pair | None = None,
        bytes_max: int | None = None,
        traffic: _Pair | None = None,
        history_samples: int | None = None,
        history_bytes: int | None = None,
        history_ms: float | None = None,
    ) -> Publisher:
        """Declares a publisher on ``tag``.

        >>> camera = node.publisher("robot/camera", hz=30, bytes_max=200_000)
        >>> camera.put(picture)

        ``hz`` or ``period_ms`` declares the rate, ``bytes_max`` the largest sample in bytes. With
        both, subscribers can get a contract before the first sample. Without ``bytes_max``, the
        largest sample so far counts. ``traffic=(2_000_000, 120_000)`` declares a mean rate in bits per
        second and the most bytes at once: contracts then reserve this instead of the largest sample in
        each period, as video of a variable bit rate needs.

        ``late=True`` sends late samples; by default they are dropped. ``latch=True`` delivers the newest
        sample to each subscriber that joins later, as the first one; ``kind`` is then ``"state"``.
        ``within_ms``
        requests a contract with this delay bound for subscribers that request none; by default they
        receive best effort. ``loss=(1, 10)`` applies to subscribers with a delay bound and no ``loss``;
        by default no sample may miss its deadline.
        ``encoding`` defaults to ``application/octet-stream``, ``kind`` follows from it.

        Any ``history_…`` argument creates a pull buffer of the published samples on this node, as
        :meth:`buffer` does.

        Raises :class:`paceline.PublishError` for an invalid tag or value.
        """
        asked = {
            "hz": hz,
            "period_ms": period_ms,
            "encoding": encoding,
            "kind": kind,
            "late": late,
            "latch": latch,
            "within_ms": within_ms,
            "loss": loss,
            "picture_size": picture_size,
            "bytes_max": bytes_max,
            "traffic": traffic,
            "history_samples": history_samples,
            "history_bytes": history_bytes,
            "history_ms": history_ms,
        }
        return self.declare_publisher(tag, asked)

    def subscriber(
        self,
        pattern: str,
        *,
        every: int | None = None,
        max_hz: float | None = None,
        min_hz: float | None = None,
        size: _Pair | None = None,
        or_sizes: Sequence[tuple[int, int]] | None = None,
        audio: _Pair | None = None,
        bitrate: int | None = None,
        min_bitrate: int | None = None,
        importance: int | None = None,
        quality: int | None = None,
        within_ms: float | None = None,
        loss: _Pair | None = None,
        proxy: _Proxy | None = None,
        retransmit: _Retransmit | None = None,
        encrypted: bool = False,
        priority: int | None = None,
        idle_s: float | None = None,
        with_tag: str | None = None,
        spare: bool = False,
        fresh_within_ms: float | None = None,
        otherwise: Literal["hold", "zero"] | None = None,
        ordered: Literal["time", "publisher", "none"] | None = None,
        hold_ms: float | None = None,
        hold_samples: int | None = None,
        hold_bytes: int | None = None,
        hold_factor: float | None = None,
        hold_late: Literal["deliver", "flag", "drop"] | None = None,
        spacing_ms: float | None = None,
        max_jitter_ms: float | None = None,
        sync_group: str | None = None,
        sync_delay_ms: float | None = None,
        queue: int | None = None,
        history_samples: int | None = None,
        history_bytes: int | None = None,
        history_ms: float | None = None,
        require: bool = False,
    ) -> Subscriber:
        """Subscribes to a tag or pattern with its own rate, size and deadline.

        >>> pictures = node.subscriber("robot/**", max_hz=10, size=(320, 240), within_ms=200,
        loss=(1, 10))

        ``every=n`` receives one sample in ``n``, ``max_hz`` at most this rate; both hold together. ``size`` scales
        pictures, ``audio`` sets the sample rate and channels of audio. ``bitrate`` limits JPEG
        pictures, H.264 video and audio to bits per second; audio is coded as Opus, one packet per
        sample. Of other data, ``bitrate`` leaves out whole samples. ``quality`` limits JPEG pictures to a quality from 1 to 100. ``proxy`` is the place of the scaling: ``publisher`` (default), ``subscriber``, ``auto``, or ``node:`` and a node's name.

        ``within_ms`` is the delay bound from publish to delivery. ``loss=(1, 10)`` lets one of each
        ten samples miss it. ``retransmit`` selects the repair of losses on QUIC links and defaults
        to ``selective``. With ``encrypted=True`` a path with an unencrypted link is refused.
        ``priority`` is the level of the contract on links with static priorities; the lowest is served
        first. ``idle_s`` releases the reservation when the publisher has sent nothing for this time, at
        least 1 s; the next sample requests it again. ``with_tag`` ties the contract to that of an opposite
        stream, published on this host and subscribed to on the publisher's: both are granted or neither.
        ``spare=True`` reserves a second path without the links of the first one, which takes over when that
        fails: both are granted or neither.

        ``min_hz``, ``or_sizes`` (smaller sizes, largest first) and ``min_bitrate`` make the contract elastic: when the
        capacity falls, or a contract with a higher ``importance`` (0 to 100, 50 by default) needs the room, it is reduced
        step by step down to these values, and restored later. Each step is announced by :class:`paceline.Adapted`.

        ``queue`` is the number of samples buffered for a slow reader, 64 by default; then the
        oldest is dropped.

        ``fresh_within_ms`` delivers only commands that are provably younger, and starts a safe action when
        they stop: ``otherwise="hold"`` (the default) reports it as an event, ``"zero"`` delivers one sample of
        zeros with ``safe``. ``ordered="time"`` delivers the samples of all publishers in the order of their
        times, ``"publisher"`` those of each one. They wait for at most ``hold_ms``, 50 by default.
        ``hold_samples`` and ``hold_bytes`` also release ``hold_factor`` (0.5 to 1) of the buffer, and
        ``hold_late`` sets the treatment of late samples: ``"flag"`` by default. ``spacing_ms`` restores the
        spacing of capture times with at most this delay. ``max_jitter_ms`` delivers each sample when
        ``within_ms`` ends. ``sync_group`` delivers samples ``sync_delay_ms`` (200 by default) after capture, at the
        same instant as all members of the group on any host. These choices exclude each other.

        With ``require=True`` a refusal raises :class:`paceline.Refused`: here if the publisher is
        known, otherwise from the calls that wait for samples. By default a refusal is an event, and
        admission is retried.
        """
        asked = {
            "every": every,
            "max_hz": max_hz,
            "min_hz": min_hz,
            "size": size,
            "or_sizes": or_sizes,
            "audio": audio,
            "bitrate": bitrate,
            "min_bitrate": min_bitrate,
            "importance": importance,
            "quality": quality,
            "within_ms": within_ms,
            "loss": loss,
            "proxy": proxy,
            "retransmit": retransmit,
            "encrypted": encrypted,
            "priority": priority,
            "idle_s": idle_s,
            "with_tag": with_tag,
            "spare": spare,
            "fresh_within_ms": fresh_within_ms,
            "otherwise": otherwise,
            "ordered": ordered,
            "hold_ms": hold_ms,
            "hold_samples": hold_samples,
            "hold_bytes": hold_bytes,
            "hold_factor": hold_factor,
            "hold_late": hold_late,
            "spacing_ms": spacing_ms,
            "max_jitter_ms": max_jitter_ms,
            "sync_group": sync_group,
            "sync_delay_ms": sync_delay_ms,
            "queue": queue,
            "history_samples": history_samples,
            "history_bytes": history_bytes,
            "history_ms": history_ms,
            "require": require,
        }
        return self.declare_subscriber(pattern, asked)

    def world(
        self,
        world: str,
        *,
        name: str | None = None,
        fragment_bytes: int | None = None,
        objects_max: int | None = None,
        replicas_max: int | None = None,
        peers_max: int | None = None,
        state_bytes_max: int | None = None,
        yields: bool | None = None,
    ) -> World:
        """Joins a world of shared objects.

        >>> town = node.world("town", name="pilot")
        >>> car = town.create("car/7", "car/1 motion{position:vector}", position=(12.0, 0.0, 3.5))
        >>> town.observe(paceline.Interest.by_distance([(50, 0.05), (500, 1)]))

        ``name`` is that of the participant, by default the node's. ``fragment_bytes`` is the greatest
        size of a message, 1,200 by default. ``objects_max`` and ``replicas_max`` limit own objects and
        the replicas of one owner, 20,000 each by default; ``peers_max`` the other participants, 1,200
        by default, and ``state_bytes_max`` the memory for the objects and schemas of others, by default
        128 MiB, or 1,280 bytes for each of ``replicas_max`` if that is more. One node uses at most seven
        eighths of these limits. With ``yields=False``, no other participant can take own objects; they
        change their owner only by a hand-over.

        Raises :class:`paceline.WorldError` for a name or value out of range.
        """
        asked = {
            "name": name,
            "fragment_bytes": fragment_bytes,
            "objects_max": objects_max,
            "replicas_max": replicas_max,
            "peers_max": peers_max,
            "state_bytes_max": state_bytes_max,
            "yields": yields,
        }
        return self.join_world(world, asked)

    def quotes(
        self,
        pattern: str,
        *,
        every: int | None = None,
        max_hz: float | None = None,
        min_hz: float | None = None,
        size: _Pair | None = None,
        or_sizes: Sequence[tuple[int, int]] | None = None,
        audio: _Pair | None = None,
        bitrate: int | None = None,
        min_bitrate: int | None = None,
        importance: int | None = None,
        quality: int | None = None,
        within_ms: float | None = None,
        loss: _Pair | None = None,
        proxy: _Proxy | None = None,
        retransmit: _Retransmit | None = None,
        encrypted: bool = False,
        priority: int | None = None,
        idle_s: float | None = None,
        with_tag: str | None = None,
        spare: bool = False,
    ) -> list[Quote]:
        """Runs the admission tests for a subscription without reserving anything.

        Returns one answer for each known publisher. The parameters are those of :meth:`subscriber`. With
        ``with_tag``, an answer is granted if both streams would be, and with ``spare`` if both paths would.

        >>> [answer.granted for answer in node.quotes("robot/camera", max_hz=10, within_ms=200)]
        """
        asked = {
            "every": every,
            "max_hz": max_hz,
            "min_hz": min_hz,
            "size": size,
            "or_sizes": or_sizes,
            "audio": audio,
            "bitrate": bitrate,
            "min_bitrate": min_bitrate,
            "importance": importance,
            "quality": quality,
            "within_ms": within_ms,
            "loss": loss,
            "proxy": proxy,
            "retransmit": retransmit,
            "encrypted": encrypted,
            "priority": priority,
            "idle_s": idle_s,
            "with_tag": with_tag,
            "spare": spare,
        }
        return self.quotes_native(pattern, asked)

    def buffer(
        self,
        pattern: str,
        *,
        every: int | None = None,
        max_hz: float | None = None,
        size: _Pair | None = None,
        history_samples: int | None = None,
        history_bytes: int | None = None,
        history_ms: float | None = None,
    ) -> Buffer:
        """Stores the samples of a tag or pattern, for any node to pull, until the buffer is closed.

        >>> last_minute = node.buffer("robot/**", history_ms=60_000)

        The first ``history_…`` limit that is reached counts, and the oldest samples are removed. By
        default the buffer keeps 1,000 samples, or any number if bytes or age are limited; 256 MiB
        of payload; one day.
        """
        asked = {
            "every": every,
            "max_hz": max_hz,
            "size": size,
            "history_samples": history_samples,
            "history_bytes": history_bytes,
            "history_ms": history_ms,
        }
        return self.declare_buffer(pattern, asked)

    def change(
        self,
        subscription: SubscriptionView | Subscriber | str,
        *,
        every: int | None = None,
        max_hz: float | None = None,
        min_hz: float | None = None,
        size: _Pair | None = None,
        or_sizes: Sequence[tuple[int, int]] | None = None,
        audio: _Pair | None = None,
        bitrate: int | None = None,
        min_bitrate: int | None = None,
        importance: int | None = None,
        quality: int | None = None,
        within_ms: float | None = None,
        loss: _Pair | None = None,
        proxy: _Proxy | None = None,
        retransmit: _Retransmit | None = None,
        reset: bool = False,
        or_stop: bool = False,
    ) -> None:
        """Changes the request of a running subscription, on this node or any other.

        >>> node.change(node.subscriptions()[0], max_hz=5)

        Arguments that are not given keep their value; ``reset=True`` first clears all of them. The
        program of the subscription receives :class:`paceline.Changed`.

        If the path refuses the change, the old request stays in force and the program receives
        :class:`paceline.ChangeRefused`. With ``or_stop=True`` the stream ends instead.

        Raises :class:`paceline.ChangeError` if the subscription has ended or its node does not
        answer.
        """
        asked = {
            "every": every,
            "max_hz": max_hz,
            "min_hz": min_hz,
            "size": size,
            "or_sizes": or_sizes,
            "audio": audio,
            "bitrate": bitrate,
            "min_bitrate": min_bitrate,
            "importance": importance,
            "quality": quality,
            "within_ms": within_ms,
            "loss": loss,
            "proxy": proxy,
            "retransmit": retransmit,
            "reset": reset,
            "or_stop": or_stop,
        }
        self.change_one(subscription if isinstance(subscription, str) else subscription.id, asked)

    def pull(
        self,
        tag: str,
        *,
        newest: int | None = None,
        nth: int | None = None,
        seq: tuple[int, int] | None = None,
        from_ns: int | None = None,
        to_ns: int | None = None,
        at: str | None = None,
        hold_at: str | None = None,
        samples: int | None = None,
        every: int | None = None,
        max_hz: float | None = None,
        size: _Pair | None = None,
        audio: _Pair | None = None,
        timeout_s: float | None = None,
    ) -> Pulled:
        """Fetches past samples from the pull buffers that store them; by default the newest sample.

        >>> for sample in node.pull("robot/camera", newest=10):
        ...     print(sample.seq)

        Select by one of: ``newest``, a number of samples; ``nth``, the n-th newest alone; ``seq``,
        a range that includes both ends; ``from_ns`` and ``to_ns``, capture times in nanoseconds since
        1970 UTC, of which either may be left out. ``at`` names the node to fetch from.
        ``hold_at`` orders a buffer of the newest ``samples`` samples at a node, 100 by default and
        10,000 at most, and pulls from it. The pull waits up to 10 s for them. The buffer ends one
        minute after its last use.
        ``timeout_s`` limits the whole pull; by default it ends when all samples arrived or the
        missing ones were requested in vain.

        Returns an iterator; afterwards its ``summary`` reports the samples received and missing.

        Raises :class:`paceline.PullError` if there is nothing to fetch.
        """
        asked = {
            "newest": newest,
            "nth": nth,
            "seq": seq,
            "from_ns": from_ns,
            "to_ns": to_ns,
            "at": at,
            "hold_at": hold_at,
            "samples": samples,
            "every": every,
            "max_hz": max_hz,
            "size": size,
            "audio": audio,
            "timeout_s": timeout_s,
        }
        return self.begin_pull(tag, asked)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open(
    *,
    name: str | None = None,
    runtime_dir: str | os.PathLike[str] | None = None,
    isolated: bool = False,
    guest: bool = False,
    links: Sequence[Link] = (),
) -> Node:
    """Opens a node that joins this host's node, or becomes it. See :class:`Node` for the
    arguments."""
    return Node(name=name, runtime_dir=runtime_dir, isolated=isolated, guest=guest, links=links)


def close_all() -> None:
    """Closes every node and waits for blocked threads. Runs when the interpreter exits."""
    for node in list(_open):
        node.close()
    _native.end()
