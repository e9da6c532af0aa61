"""The node: its keyword arguments, spelled out. Each is the flag of the command line of the same name."""

import os
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

from . import _native
from ._native import Buffer, Prospect, Publisher, Pulled, Subscriber, SubscriptionView

__all__ = ["Link", "Node", "close_all", "open"]

_Pair = tuple[int, int] | str
_Kind = Literal["data", "state", "picture", "audio", "video"]
_Proxy = Literal["publisher", "subscriber"]
_Retransmit = Literal["none", "selective", "go-back-n"]

# What has to be closed before the interpreter ends.
_open: "weakref.WeakSet[Node]" = weakref.WeakSet()


@dataclass(frozen=True, kw_only=True)
class Link:
    """One link: the endpoints that share one capacity and one scheduler, such as ``tcp/10.0.0.2:7600``."""

    name: str
    listen: Sequence[str] = ()
    connect: Sequence[str] = ()
    capacity_bits_per_s: int | None = None
    """What it carries, headers counted; without one it can hold no contract."""
    policy: str | None = None
    """The discipline that schedules it: ``vds`` if not said."""
    insecure: bool = False
    """Listens beyond this host without TLS."""


class Node(_native.Node):
    """One engine: it joins the node of this host, or becomes it."""

    def __new__(
        cls,
        *,
        name: str | None = None,
        runtime_dir: str | os.PathLike[str] | None = None,
        isolated: bool = False,
        guest: bool = False,
        links: Sequence[Link] = (),
    ) -> Self:
        asked = {
            "name": name,
            "runtime_dir": runtime_dir,
            "isolated": isolated,
            "guest": guest,
            "links": links,
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
        loss: _Pair | None = None,
        picture_size: _Pair | None = None,
        bytes_max: int | None = None,
        history_samples: int | None = None,
        history_bytes: int | None = None,
        history_ms: float | None = None,
    ) -> Publisher:
        """Announces a publisher on ``tag``.

        ``hz`` or ``period_ms`` declares how often samples come, ``bytes_max`` how large they are at most: with both,
        what subscribers ask for can be promised before the first sample. ``late=True`` sends samples that are late,
        ``loss=(1, 10)`` is what subscribers bear that state ``within_ms`` and no loss of their own. With one of the
        ``history_…`` what is published is held here, to be pulled.
        """
        asked = {
            "hz": hz,
            "period_ms": period_ms,
            "encoding": encoding,
            "kind": kind,
            "late": late,
            "loss": loss,
            "picture_size": picture_size,
            "bytes_max": bytes_max,
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
        size: _Pair | None = None,
        audio: _Pair | None = None,
        within_ms: float | None = None,
        loss: _Pair | None = None,
        proxy: _Proxy | None = None,
        retransmit: _Retransmit | None = None,
        queue: int | None = None,
        history_samples: int | None = None,
        history_bytes: int | None = None,
        history_ms: float | None = None,
        require: bool = False,
    ) -> Subscriber:
        """Subscribes to a tag or pattern at a rate, size and deadline of its own.

        ``within_ms`` is the delay bound, publish to delivery; ``loss=(1, 10)`` lets one of each ten samples miss it.
        ``queue`` samples wait for a slow reader before the oldest is dropped, 64 if not said. With ``require`` a
        refusal is raised as :class:`paceline.Refused`, here if the answer is known, else where samples are waited for.
        """
        asked = {
            "every": every,
            "max_hz": max_hz,
            "size": size,
            "audio": audio,
            "within_ms": within_ms,
            "loss": loss,
            "proxy": proxy,
            "retransmit": retransmit,
            "queue": queue,
            "history_samples": history_samples,
            "history_bytes": history_bytes,
            "history_ms": history_ms,
            "require": require,
        }
        return self.declare_subscriber(pattern, asked)

    def ask(
        self,
        pattern: str,
        *,
        every: int | None = None,
        max_hz: float | None = None,
        size: _Pair | None = None,
        audio: _Pair | None = None,
        within_ms: float | None = None,
        loss: _Pair | None = None,
        proxy: _Proxy | None = None,
    ) -> list[Prospect]:
        """Would a subscription be granted now? One answer for each publisher that is known; nothing is reserved."""
        asked = {
            "every": every,
            "max_hz": max_hz,
            "size": size,
            "audio": audio,
            "within_ms": within_ms,
            "loss": loss,
            "proxy": proxy,
        }
        return self.ask_paths(pattern, asked)

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
        """Holds what comes on a tag or pattern, for any node to pull, until it is closed.

        The first of the ``history_…`` that is reached counts, and the oldest sample goes.
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
        size: _Pair | None = None,
        audio: _Pair | None = None,
        within_ms: float | None = None,
        loss: _Pair | None = None,
        proxy: _Proxy | None = None,
        retransmit: _Retransmit | None = None,
        reset: bool = False,
        or_stop: bool = False,
    ) -> None:
        """Lets a subscription, of this node or another, ask for something else while samples come.

        What is not said stays; ``reset=True`` takes back all that was asked for before. ``node.subscriptions()`` lists
        those that there are; their programs are told by :class:`paceline.Changed`. If the path refuses, everything stays as
        it was and the program gets :class:`paceline.ChangeRefused`. With ``or_stop=True`` the stream ends instead.
        """
        asked = {
            "every": every,
            "max_hz": max_hz,
            "size": size,
            "audio": audio,
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
        time_ns: tuple[int, int] | None = None,
        from_node: str | None = None,
        every: int | None = None,
        max_hz: float | None = None,
        size: _Pair | None = None,
        audio: _Pair | None = None,
        timeout_s: float | None = None,
    ) -> Pulled:
        """Brings samples that were published before, from the buffers that hold them: the newest if nothing is said.

        ``seq`` and ``time_ns`` are ranges, both ends included. Iterate over what it gives; ``summary`` then says what
        became of it.
        """
        asked = {
            "newest": newest,
            "nth": nth,
            "seq": seq,
            "time_ns": time_ns,
            "from_node": from_node,
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
    """Opens a node that joins the node of this host, or becomes it; see :class:`Node`."""
    return Node(name=name, runtime_dir=runtime_dir, isolated=isolated, guest=guest, links=links)


def close_all() -> None:
    """Closes every node, as the end of the interpreter does, and waits until no thread waits for one."""
    for node in list(_open):
        node.close()
    _native.end()
