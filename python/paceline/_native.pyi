"""The compiled module (crates/paceline-py).

``cargo xtask python`` compares this stub with it.
"""

import builtins
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, Protocol, Self, final

from numpy.typing import NDArray
from typing_extensions import Buffer as Buffer_
from typing_extensions import disjoint_base

__all__ = [
    "Bell",
    "Buffer",
    "Decider",
    "EndsTooSlow",
    "ExchangeTerms",
    "Interest",
    "ObjectView",
    "PairView",
    "ServiceRefused",
    "SharedObject",
    "World",
    "WorldEvent",
    "Clock",
    "HttpServer",
    "Reading",
    "ChangeRefused",
    "Adapted",
    "Changed",
    "Excess",
    "Feedback",
    "Grant",
    "GrantedHop",
    "Heard",
    "Loan",
    "Measured",
    "NoSpare",
    "Node",
    "Resumed",
    "Silent",
    "Warned",
    "Withdrawn",
    "Payload",
    "Quote",
    "Publisher",
    "PublisherStatus",
    "Pulled",
    "PutReport",
    "Refusal",
    "Sample",
    "Subscriber",
    "SubscriptionStatus",
    "SubscriptionView",
    "Summary",
    "BestEffort",
    "after_fork",
    "command",
    "end",
    "thread_setting",
]

class _Array(Protocol):
    """A numpy array. numpy's stubs declare it as a buffer only for Python 3.12 and newer."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...

def after_fork() -> None: ...
def end() -> None: ...
def command(arguments: Sequence[str], again: Sequence[str]) -> int:
    """Runs the ``paceline`` command line, program name first, and returns its exit code. ``again``
    are the words that start this program again in a child process."""

def thread_setting() -> tuple[str, str] | None:
    """Returns the environment variable with the size of Zenoh's thread pools, and its value;
    ``None`` if the environment has the variable."""

@final
class Payload:
    """The payload bytes of a sample, as a read-only buffer. Exporting it never copies."""

    def __len__(self) -> int: ...
    def __bytes__(self) -> bytes: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Sample:
    """One received sample.

    ``numpy.asarray(sample)`` returns an array over the received bytes, without a copy. A raw
    picture or linear audio gets its natural shape.
    """

    @property
    def tag(self) -> str:
        """The tag on which the sample was published."""
    @property
    def publisher(self) -> str:
        """The id of the publisher."""
    @property
    def seq(self) -> int:
        """The publisher's sequence number."""
    @property
    def captured_ns(self) -> int:
        """The capture time by the publisher's clock, in nanoseconds since 1970 UTC."""
    @property
    def captured_error_us(self) -> int | None:
        """The error bound of the publisher's clock, in microseconds; ``None`` if it is unknown."""
    @property
    def age_ms(self) -> float:
        """The time from publish to delivery, in milliseconds."""
    @property
    def late(self) -> bool:
        """True if ``age_ms`` exceeded the delay bound."""
    @property
    def fresh_ms(self) -> float | None:
        """The time in milliseconds for which the command may still act; ``None`` without an age limit."""
    @property
    def safe(self) -> bool:
        """True for the safe action that follows the last command of an age limit."""
    @property
    def order(self) -> str | None:
        """The place in the order of times: ``in_order``, ``unknown`` or ``late``; ``None`` without an order."""
    @property
    def kind(self) -> str:
        """The kind of the sample: data, state, picture, audio, or the picture type of a video
        frame."""
    @property
    def encoding(self) -> str:
        """The media type of the payload."""
    @property
    def payload(self) -> memoryview:
        """The payload as a read-only ``memoryview``, without a copy."""
    @property
    def attachment(self) -> bytes | None:
        """The bytes that the publisher attached to the sample; ``None`` without an attachment."""
    @property
    def __array_interface__(self) -> dict[str, Any]:
        """numpy's array interface. The array shares the sample's memory and keeps the sample
        alive."""
    def __bytes__(self) -> bytes: ...
    def __len__(self) -> int: ...

@final
class Loan:
    """Memory for one sample: fill it in place, then publish it without a copy.

    >>> frame = camera.loan((1080, 1920, 3))
    >>> frame.array[:] = 128
    >>> camera.put(frame)

    If a view of the memory still exists when the loan is published, the bytes are copied once.
    """

    @property
    def array(self) -> NDArray[Any]:
        """A new writable numpy array over the memory, with the requested shape and element type.
        Raises ``ValueError`` once the loan was published."""
    @property
    def buffer(self) -> memoryview:
        """A new writable ``memoryview`` of the bytes. Raises ``ValueError`` once the loan was
        published."""
    def __len__(self) -> int: ...

@final
class PutReport:
    """The result of publishing one sample, as counted by this node."""

    @property
    def seq(self) -> int:
        """The sequence number of the sample."""
    @property
    def taken(self) -> int:
        """The number of outputs that accepted the sample: streams, and groups of local
        subscribers that share a form."""
    @property
    def dropped(self) -> int:
        """The number of outputs that dropped the sample. Each counts the drop by its reason."""
    @property
    def reason(self) -> str | None:
        """The reason of the first of these drops, such as ``"queue_full"``. None without a drop, and if
        the subscribers on this node dropped the sample, each for its own reason."""
    @property
    def waits(self) -> bool:
        """True if the publisher was just declared. Its first samples are buffered until existing
        subscriptions are served."""

@final
class PublisherStatus:
    """Counters of one publisher."""

    @property
    def published(self) -> int:
        """The number of samples published."""
    @property
    def rate_hz(self) -> float:
        """The publishing rate over the last second or more, in samples per second."""
    @property
    def matching(self) -> bool:
        """True if any subscription, on any node, matches the tag."""

@final
class Publisher:
    """Publishes samples on one tag. All threads may share it."""

    @property
    def id(self) -> str:
        """The id of the publisher."""
    @property
    def tag(self) -> str:
        """The tag on which it publishes."""
    def put(
        self,
        payload: Buffer_ | _Array | Loan,
        *,
        encoding: str | None = None,
        captured_ns: int | None = None,
        attachment: bytes | None = None,
        wait: bool = False,
    ) -> PutReport:
        """Publishes one sample and returns a ``PutReport``.

        ``payload`` is ``bytes``, a ``Loan``, or any object with a buffer; ``captured_ns`` is in
        nanoseconds since 1970 UTC. The call never blocks by default. With ``wait=True`` it blocks
        until every stream has room, and from then on none of the publisher's samples expires.

        Raises ``PublishError`` if the payload is too large, and ``ClosedError`` after ``close``.
        """
    def put_async(
        self,
        payload: Buffer_ | _Array | Loan,
        *,
        encoding: str | None = None,
        captured_ns: int | None = None,
        attachment: bytes | None = None,
    ) -> Awaitable[PutReport]:
        """Publishes one sample from asynchronous code, as ``put`` with ``wait=True``. Other
        tasks run until every stream has room; no thread blocks."""
    def put_many(self, payloads: Iterable[Buffer_ | _Array | Loan], *, wait: bool = False) -> PutReport:
        """Publishes each payload of an iterable as one sample, in order.

        Returns one ``PutReport`` with the last sequence number and the sums of ``taken`` and ``dropped``.
        With ``wait=True`` it blocks before each sample until every stream has room.
        """
    def loan(self, shape: int | Sequence[int], dtype: object = "uint8") -> Loan:
        """Returns zeroed memory for one sample: fill it in place, then pass it to ``put``.

        ``shape`` is a length or a tuple of lengths. ``dtype`` is any numpy element type except
        objects, and defaults to bytes.
        """
    def wait_room(self, timeout_s: float | None = None) -> bool:
        """Blocks until every stream has room for a sample. Returns false if ``timeout_s`` passed
        first; ``None`` waits without limit."""
    @property
    def matching(self) -> bool:
        """True if any subscription, on any node, matches the tag."""
    def wait_matching(self, timeout_s: float | None = None) -> bool:
        """Blocks until any subscription matches the tag. Returns false if ``timeout_s`` passed
        first; ``None`` waits without limit."""
    def status(self) -> PublisherStatus:
        """Returns the node's counters of this publisher."""
    def events(self) -> list[Grant | Refusal | Withdrawn | Warned | Excess]:
        """Returns the events since the last call, oldest first.

        ``Grant``, ``Refusal`` and ``Withdrawn`` report the contracts of subscriptions. ``Excess`` counts
        the samples beyond the declared rate or size.
        """
    def feedback(self, timeout_s: float = 0.5) -> list[Feedback]:
        """Returns the request, the contract and the measurements of every subscription.

        Asks the nodes of the subscriptions and waits at most ``timeout_s`` seconds, 0.5 by default.
        A node that does not answer in time leaves ``measured`` empty.
        """
    @property
    def held(self) -> dict[str, int] | None:
        """The number of samples and bytes in the history, as a dict; ``None`` without a history."""
    def close(self, timeout_s: float = 5.0) -> bool:
        """Ends the publisher after sending its queued samples.

        Waits at most ``timeout_s`` seconds, 5 by default. Returns false if a sample was left
        unsent.
        """
    def __enter__(self) -> Self: ...
    def __exit__(self, *_error: object) -> None: ...

@final
class Heard:
    """Event: the set of publishers that the subscriber receives has changed."""

    @property
    def publishers(self) -> list[str]:
        """The ids of the publishers that the subscriber receives now."""

@final
class Excess:
    """Event: samples exceeded the declared or granted traffic. The counts are totals since the
    start."""

    @property
    def publisher(self) -> str | None:
        """The publisher, in a subscriber's event; ``None`` in a publisher's own event."""
    @property
    def node(self) -> str | None:
        """The node whose link counted them, in a subscriber's event; ``None`` in a publisher's
        own event."""
    @property
    def early(self) -> int:
        """The number of samples that arrived sooner than the contract allows."""
    @property
    def long(self) -> int:
        """The number of samples that were longer than the contract allows."""

@final
class Silent:
    """Event: the last command of a tag has reached the age limit, and its safe action has started."""

    @property
    def tag(self) -> str:
        """The tag of the commands."""
    @property
    def publisher(self) -> str:
        """The id of the publisher of the last command."""
    @property
    def seq(self) -> int:
        """The sequence number of the last command."""

@final
class Resumed:
    """Event: a command was released after a silence: the safe action has ended."""

    @property
    def tag(self) -> str:
        """The tag of the commands."""
    @property
    def publisher(self) -> str:
        """The id of the publisher of the command."""
    @property
    def seq(self) -> int:
        """The sequence number of the command."""
    @property
    def silent_ms(self) -> float:
        """The time since the safe action started, in milliseconds."""

@final
class NoSpare:
    """Event: a granted stream has no spare although one was requested. The grant stays in force, and
    the spare is requested again."""

    @property
    def publisher(self) -> str:
        """The id of the publisher."""
    @property
    def refusal(self) -> Refusal:
        """The refusal of the second path."""

@final
class Withdrawn:
    """Event: a grant or refusal no longer applies and no contract is in force. The path was lost,
    or the contract is no longer requested."""

    @property
    def other(self) -> str:
        """The id of the publisher in a subscriber's event, of the subscription in a publisher's
        event."""

@final
class BestEffort:
    """Event: a publisher is received as best effort although the subscription requests a
    contract."""

    @property
    def publisher(self) -> str:
        """The id of the publisher."""
    @property
    def reason(self) -> str:
        """The reason as a word: ``no_capacity`` (no link of the path has a capacity),
        ``rate_unknown``, ``size_unknown`` (the publisher's first sample decides), ``idle``
        (nothing was published for the idle time) or ``refused`` (the contract that the publisher
        requested)."""
    @property
    def text(self) -> str:
        """The reason as a sentence."""

@final
class Changed:
    """Event: the request of the subscription has changed, by its own program or from another
    node."""

    @property
    def form(self) -> str:
        """The requested rate and size, as text."""
    @property
    def within_ms(self) -> float | None:
        """The requested delay bound in milliseconds; ``None`` without one."""
    @property
    def loss(self) -> tuple[int, int] | None:
        """The requested loss tolerance (x, y): at most x of y samples may miss the deadline."""
    @property
    def revision(self) -> int:
        """The number of the request. The ``Grant`` or ``Refusal`` that answers it carries the
        same number."""

@final
class Adapted:
    """Event: the nodes of the paths have reduced an elastic contract, or restored a part of it."""

    @property
    def form(self) -> str:
        """The requested rate and size from now on, as text."""
    @property
    def max_hz(self) -> float | None:
        """The largest rate in hertz; ``None`` without one."""
    @property
    def step(self) -> int:
        """The new step, from 0 for the most that the subscription requests."""
    @property
    def steps(self) -> int:
        """The number of steps."""
    @property
    def reason(self) -> Literal["refused", "important", "room"]:
        """The reason as a word: ``refused`` (a path refuses more), ``important`` (a more important
        contract needs the room) or ``room`` (the path carries more again)."""
    @property
    def text(self) -> str:
        """The step and the reason, as a sentence."""
    @property
    def revision(self) -> int:
        """The number of the request. The ``Grant`` or ``Refusal`` that answers it carries the
        same number."""

@final
class Warned:
    """Event: the measured capacity of a link falls, and will soon be too little for a granted
    contract. The grant is still in force."""

    @property
    def other(self) -> str:
        """The id of the publisher in a subscriber's event, of the subscription in a publisher's
        event."""
    @property
    def after_s(self) -> float:
        """The time until then, in seconds."""
    @property
    def form(self) -> str | None:
        """The form that an elastic contract is expected to take, as text; ``None`` if the contract
        is expected to end."""
    @property
    def text(self) -> str:
        """The forecast, as a sentence."""

@final
class ChangeRefused:
    """Event: a change was refused. The previous request stayed in force throughout."""

    @property
    def refusals(self) -> list[Refusal]:
        """The refusals, one for each publisher."""
    @property
    def form(self) -> str:
        """The rate and size in force, as text."""
    @property
    def within_ms(self) -> float | None:
        """The delay bound in force, in milliseconds; ``None`` without one."""
    @property
    def loss(self) -> tuple[int, int] | None:
        """The loss tolerance (x, y) in force; ``None`` without one."""

@final
class GrantedHop:
    """The reservation on one node of a path."""

    @property
    def node(self) -> str:
        """The name of the node."""
    @property
    def node_id(self) -> str:
        """The id of the node."""
    @property
    def link(self) -> str:
        """The name of the link."""
    @property
    def capacity_bits_per_s(self) -> int | None:
        """The link's capacity in bits per second; ``None`` if the link has none."""
    @property
    def bytes_per_s(self) -> int:
        """The reserved rate in bytes per second, headers included, less the share that the loss
        tolerance permits to drop."""
    @property
    def burst_bytes(self) -> int:
        """The reserved burst in bytes."""
    @property
    def bound_ms(self) -> float:
        """The delay bound of this hop in milliseconds."""
    @property
    def realtime(self) -> bool:
        """True if the processors are reserved at both ends of the hop: the threads of this node and
        of the next one have real-time priorities."""

@final
class Grant:
    """The contract on one publisher's samples, in force as long as it is reserved."""

    @property
    def publisher(self) -> str:
        """The id of the publisher."""
    @property
    def revision(self) -> int:
        """The number of the request that it answers; 0 is the first one."""
    @property
    def form(self) -> str:
        """The granted rate and size, as text."""
    @property
    def max_hz(self) -> float | None:
        """The largest rate in hertz; ``None`` without one."""
    @property
    def subscription(self) -> str:
        """The id of the subscription."""
    @property
    def learned(self) -> bool:
        """True if the reserved traffic was learned from the last minute and not declared."""
    @property
    def bound_ms(self) -> float:
        """The end-to-end delay bound that the path guarantees, in milliseconds."""
    @property
    def within_ms(self) -> float | None:
        """The requested delay bound in milliseconds; ``None`` without one."""
    @property
    def hops(self) -> list[GrantedHop]:
        """The reservations along the path, from the publisher's node to the last one before the
        subscription's node."""
    @property
    def spare(self) -> list[GrantedHop]:
        """The reservations along the path of the spare; empty without one."""

@final
class Refusal:
    """A negative admission answer for one publisher's stream."""

    @property
    def publisher(self) -> str:
        """The id of the publisher."""
    @property
    def revision(self) -> int:
        """The number of the request that it answers; 0 is the first one."""
    @property
    def subscription(self) -> str:
        """The id of the subscription."""
    @property
    def node(self) -> str:
        """The name of the node that refused."""
    @property
    def node_id(self) -> str:
        """The id of the node that refused."""
    @property
    def link(self) -> str:
        """The link that cannot carry the stream; empty if no link is the reason. For ``rights``, the
        name of the node without the right."""
    @property
    def reason(self) -> str:
        """The reason as a word: ``capacity``, ``deadlines``, ``delay``, ``processor``, ``buffer``,
        ``host_buffer``, ``no_guarantee``,
        ``no_answer``, ``size_above_source``, ``opposite``,
        ``unscalable``, ``unthinnable``, ``rights``, ``unencrypted``, ``no_proxy``, ``no_second_path``,
        ``too_many_spares`` or ``other``."""
    @property
    def spare(self) -> bool:
        """True if the second path of a request with a spare is refused."""
    @property
    def needed_bytes_per_s(self) -> int:
        """The rate that the stream needs, in bytes per second."""
    @property
    def available_bytes_per_s(self) -> int:
        """The rate that is available, in bytes per second."""
    @property
    def offers(self) -> list[dict[str, Any]]:
        """The contracts that would be granted instead, as keyword arguments of a subscriber.
        Each suffices alone."""
    @property
    def offer(self) -> dict[str, Any]:
        """The first of ``offers``; empty if there is none."""
    @property
    def offer_bytes(self) -> int | None:
        """The largest sample size in bytes that the same contract admits. Only the publisher can
        change it."""

@final
class Measured:
    """Measurements of a subscription by its node, over all publishers that it receives."""

    @property
    def delivered(self) -> int:
        """The number of samples delivered."""
    @property
    def bytes(self) -> int:
        """The number of payload bytes delivered."""
    @property
    def late(self) -> int:
        """The number of samples that were older than the delay bound at their arrival, or when the application took them."""
    @property
    def overdue(self) -> int:
        """The part of ``late`` that arrived in time: the samples waited in the process of the subscription."""
    @property
    def dropped(self) -> int:
        """The number of samples dropped at the subscription's node. Drops on earlier links are
        not included."""
    @property
    def rate_hz(self) -> float:
        """The delivery rate over the last second or more, in samples per second."""
    @property
    def age_max_ms(self) -> float:
        """The greatest age of the samples that the application took in the last second or more, in milliseconds."""
    @property
    def age_mean_ms(self) -> float | None:
        """The mean age of all samples delivered, in milliseconds; ``None`` before the first."""
    @property
    def players(self) -> int | None:
        """The number of RTSP players that share the subscription; ``None`` without a server of players."""
    @property
    def players_lost(self) -> int | None:
        """The number of RTP packets that these players reported as lost; ``None`` without a server of players."""

@final
class Feedback:
    """The request, the contract and the measurements of one subscription."""

    @property
    def subscription(self) -> str:
        """The id of the subscription."""
    @property
    def node(self) -> str:
        """The name of its node."""
    @property
    def form(self) -> str:
        """The requested rate and size that the publisher can provide, as text."""
    @property
    def period_ms(self) -> float | None:
        """The expected time between samples in milliseconds; ``None`` if it is unknown."""
    @property
    def within_ms(self) -> float | None:
        """The requested delay bound in milliseconds; ``None`` without one."""
    @property
    def loss(self) -> tuple[int, int] | None:
        """The requested loss tolerance (x, y); ``None`` without one."""
    @property
    def grant(self) -> Grant | None:
        """The contract in force; ``None`` for best effort."""
    @property
    def refusal(self) -> Refusal | None:
        """The refusal; ``None`` if the subscription was not refused."""
    @property
    def measured(self) -> Measured | None:
        """The node's measurements; ``None`` if the node did not answer in time."""

@final
class Quote:
    """The admission answer that a path would give now for one publisher's samples."""

    @property
    def publisher(self) -> str:
        """The id of the publisher."""
    @property
    def tag(self) -> str:
        """The tag of the publisher."""
    @property
    def node(self) -> str:
        """The name of the publisher's node."""
    @property
    def complete(self) -> bool:
        """True if every node of the path answered within half a second."""
    @property
    def granted(self) -> bool:
        """True if every node of the path would admit the stream."""
    @property
    def grant(self) -> Grant | None:
        """The contract that would be granted; ``None`` if the samples would be best effort."""
    @property
    def step(self) -> int | None:
        """The step of an elastic contract that the answer is for, from 0 for the most that is
        requested; ``None`` if the request is not elastic."""
    @property
    def refusal(self) -> Refusal | None:
        """The refusal that a subscription would receive; ``None`` if nothing prevents it."""
    @property
    def opposite_grant(self) -> Grant | None:
        """The contract of the stream of ``with_tag`` that would be granted together with this one;
        ``None`` without such a stream, or if it would be best effort."""
    @property
    def opposite_refusal(self) -> Refusal | None:
        """The refusal of the stream of ``with_tag``; ``None`` if nothing prevents it."""
    @property
    def estimate_ms(self) -> float | None:
        """The delay that the period of the samples suggests, in milliseconds: one period on each hop. It is an
        estimate; None if the publisher declares no period."""

@final
class SubscriptionStatus:
    """Counters of one subscriber."""

    @property
    def delivered(self) -> int:
        """The number of samples delivered."""
    @property
    def bytes(self) -> int:
        """The number of payload bytes delivered."""
    @property
    def rate_hz(self) -> float:
        """The delivery rate over the last second or more, in samples per second."""
    @property
    def late(self) -> int:
        """The number of samples that were older than the delay bound at their arrival, or when the application took them."""
    @property
    def overdue(self) -> int:
        """The part of ``late`` that arrived in time: the samples waited in this process."""
    @property
    def age_max_ms(self) -> float:
        """The greatest age of the samples that the application took in the last second or more, in milliseconds."""
    @property
    def age_mean_ms(self) -> float | None:
        """The mean age of all samples delivered since the start, in milliseconds; ``None``
        before the first."""
    @property
    def dropped(self) -> dict[str, int]:
        """The number of samples dropped, by reason."""
    @property
    def publishers(self) -> list[str]:
        """The ids of the publishers that the subscriber receives now."""
    @property
    def refusals(self) -> list[str]:
        """The reasons why other publishers are not received, as text."""

@final
class Subscriber:
    """Receives samples through a bounded queue. Iterate over it, or call ``recv`` or ``take``;
    all threads may share it."""

    @property
    def id(self) -> str:
        """The id of the subscription."""
    def recv(self, timeout_s: float | None = None) -> Sample:
        """Blocks until the next sample arrives and returns it.

        Raises ``Timeout`` after ``timeout_s`` seconds; ``None``, the default, waits without limit.
        Raises ``ClosedError`` once the subscription is closed and its queue is empty. Raises
        ``Refused`` on a refusal if the subscription was declared with ``require=True``.
        """
    def try_recv(self) -> Sample | None:
        """Returns the next queued sample, or ``None`` if the queue is empty. Raises as ``recv``,
        except ``Timeout``."""
    def take(self, max_samples: int = 1024, *, timeout_s: float | None = None) -> list[Sample]:
        """Blocks until a sample arrives and returns all queued samples, at most ``max_samples``.

        ``max_samples`` defaults to 1024. Raises as ``recv``.
        """
    def try_take(self, max_samples: int = 1024) -> list[Sample]:
        """Returns all queued samples without blocking, at most ``max_samples``; an empty list if
        none is queued."""
    def events(self) -> list[Heard | Grant | NoSpare | Refusal | Withdrawn | BestEffort | Excess | Changed | Adapted | Warned | ChangeRefused | Silent | Resumed]:
        """Returns the events since the last call, oldest first.

        Only the 64 newest unread events are kept.
        """
    def change(
        self,
        *,
        every: int | None = None,
        max_hz: float | None = None,
        min_hz: float | None = None,
        size: tuple[int, int] | str | None = None,
        or_sizes: Sequence[tuple[int, int]] | None = None,
        audio: tuple[int, int] | str | None = None,
        bitrate: int | None = None,
        min_bitrate: int | None = None,
        importance: int | None = None,
        quality: int | None = None,
        within_ms: float | None = None,
        loss: tuple[int, int] | str | None = None,
        proxy: str | None = None,
        retransmit: Literal["none", "selective", "go-back-n"] | None = None,
        reset: bool = False,
        or_stop: bool = False,
    ) -> None:
        """Changes the request of the running subscription; samples continue to arrive.

        Arguments that are not given keep their value; ``reset=True`` first clears all of them. If
        the path refuses, the old request stays in force, or the stream ends with ``or_stop=True``.

        Raises ``ChangeError`` if the subscription has ended, and ``SubscribeError`` for values out
        of range.
        """
    def status(self) -> SubscriptionStatus:
        """Returns the node's counters of this subscriber."""
    @property
    def dropped(self) -> dict[str, int]:
        """The number of samples dropped in this process, by reason."""
    @property
    def overdue(self) -> int:
        """The number of late samples that had arrived in time, and then waited in this process."""
    @property
    def missing(self) -> int:
        """The number of samples published between the first and the newest delivered one of each
        publisher, and not delivered. It includes the drops of all nodes; with a reduced rate, only
        samples that arrived here."""
    @property
    def closed(self) -> bool:
        """True once the subscriber, or its node, was closed."""
    def close(self) -> None:
        """Ends the subscription. Blocked calls of other threads raise ``ClosedError``."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_error: object) -> None: ...
    def __iter__(self) -> Iterator[Sample]: ...
    def __next__(self) -> Sample: ...
    def __aiter__(self) -> AsyncIterator[Sample]: ...

@final
class ExchangeTerms:
    """The terms at which an object is exchanged with an observer."""

    def __new__(
        cls,
        every_s: float,
        *,
        refresh_s: float | None = None,
        fidelity: float | None = None,
        tolerance: float = 0.0,
        weight: float = 1.0,
    ) -> Self:
        """Creates terms: at most one update per ``every_s``, and one at least each ``refresh_s`` (10
        times as long by default, at least 1 s).

        ``fidelity`` is the least share of the object that an update carries; by default it carries what
        changed. ``tolerance`` is the error of the replica's extrapolated position up to which no update is
        needed. ``weight`` is the importance relative to other objects.

        Raises ``ValueError`` for a value out of range.
        """

@final
class Interest:
    """What an observer receives."""

    @staticmethod
    def every(every_s: float, *, range: float = ...) -> Interest:
        """All objects within ``range``, at most one update of each per ``every_s`` seconds. By default
        all objects of the world."""
    @staticmethod
    def by_distance(
        steps: Sequence[tuple[float, float]],
        *,
        half_angle: float | None = None,
        outside: ExchangeTerms | None = None,
    ) -> Interest:
        """Objects by distance: within each distance, at most one update per number of seconds.

        With ``half_angle``, in radians, only objects in view; others at the terms ``outside``, or not
        at all.
        """
    @staticmethod
    def declared(
        terms: ExchangeTerms,
        *,
        whom: str | None = None,
        every: str | None = None,
        fidelity: str | None = None,
        tolerance: str | None = None,
        weight: str | None = None,
        range: float = ...,
    ) -> Interest:
        """Objects by expressions in CEL, which the owner of an object evaluates. ``terms`` apply where
        there is no expression."""
    def with_contract(
        self,
        *,
        max_updates: int,
        bytes: int,
        delay_s: float,
        per_s: float = 1.0,
        refresh_s: float = 1.0,
        fidelity: float = 1.0,
        objects: int = 1,
    ) -> Interest:
        """The same with a contract for the ``objects`` most important objects of each owner.

        It promises at most ``max_updates`` in ``per_s`` seconds and one at least each ``refresh_s``, of
        objects of at most ``bytes``, ``delay_s`` after the change, each with at least the share
        ``fidelity`` of the object.
        """
    def with_modules(
        self,
        *,
        error_control: Literal["acknowledged", "refreshed"] = "acknowledged",
        policing: Literal["shape", "drop"] = "shape",
        fragment_bytes: int | None = None,
    ) -> Interest:
        """The same with other modules: ``error_control`` is ``acknowledged`` or ``refreshed``,
        ``policing`` is ``shape`` or ``drop``, and ``fragment_bytes`` the greatest size of a fragment, by
        default the owner's."""

@final
class PairView:
    """The facts of an object and an observer, for a semantic function."""

    @property
    def path(self) -> str:
        """The path of the object."""
    @property
    def peer(self) -> str:
        """The id of the observer."""
    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the object."""
    @property
    def distance(self) -> float | None:
        """The distance of the two; ``None`` if one of them has no position."""
    @property
    def angle(self) -> float | None:
        """The angle between the observer's direction of view and the object, in radians; ``None``
        without such a direction."""
    @property
    def error(self) -> float:
        """The distance between the object and where its replica extrapolates it."""
    @property
    def speed(self) -> float:
        """The speed of the object per second."""
    @property
    def age_s(self) -> float | None:
        """The time since the last exchange of the two in seconds; ``None`` if there was none."""

@final
class ObjectView:
    """The state of an object at one time: of this participant, or a replica."""

    @property
    def path(self) -> str:
        """The path in the world."""
    @property
    def owner(self) -> str:
        """The name of its owner, or its id while the name is not known."""
    @property
    def owner_id(self) -> str:
        """The id of its owner."""
    @property
    def owned(self) -> bool:
        """True if this participant owns it."""
    @property
    def schema(self) -> str | None:
        """The schema as text; ``None`` until the description of the owner has arrived."""
    @property
    def fields(self) -> dict[str, Any]:
        """The values of the fields that have arrived."""
    @property
    def position(self) -> tuple[float, float, float] | None:
        """The position, extrapolated with the last velocity; ``None`` for an object without one."""
    @property
    def age_s(self) -> float:
        """The maximum age of the state, in seconds. 0 for an own object."""
    @property
    def updates(self) -> int:
        """The number of updates that were received."""

@final
class SharedObject:
    """An object of this participant. It stays in the world when this is dropped."""

    @property
    def path(self) -> str:
        """The path in the world."""
    @property
    def schema(self) -> str:
        """The schema, as text."""
    def set(self, values: dict[str, Any] | None = None, /, **fields: Any) -> None:
        """Sets fields, given as keyword arguments or as a dict. Observers receive them when their
        interest demands it. After an error nothing is changed.

        Raises ``WorldError`` if the object was deleted or handed over.
        """
    def set_with(
        self, values: dict[str, Any], /, *, fidelity: float | None = None, within_s: float | None = None
    ) -> None:
        """Sets fields, given as a dict, with constraints of this change: the least share of the object that
        the update carries, and the seconds in which it must leave. A later one is dropped, and the next
        change or refresh carries the state.

        Raises ``WorldError`` if the object was deleted or handed over, or for a constraint out of range.
        """
    def delete(self) -> None:
        """Deletes the object; its replicas end. Raises ``WorldError`` if it was deleted or handed
        over."""
    def hand_over(self, to: str) -> None:
        """Hands the object over to the participant with the id ``to``. It cannot be set meanwhile; an
        event ``yielded`` or, after 5 s, ``kept`` reports the end.

        Raises ``WorldError`` if it is not owned, or if there is no such participant.
        """

@final
class WorldEvent:
    """A change in a world."""

    @property
    def kind(
        self,
    ) -> Literal[
        "joined",
        "left",
        "created",
        "changed",
        "deleted",
        "withdrawn",
        "owner_changed",
        "lost",
        "adopted",
        "yielded",
        "kept",
        "disabled",
    ]:
        """What happened."""
    @property
    def path(self) -> str | None:
        """The path of the object; ``None`` for an event of a participant."""
    @property
    def peer(self) -> str | None:
        """The id of the participant: who joined or left, the new owner, or the observer."""
    @property
    def text(self) -> str | None:
        """The name of a participant who joined or left, and the reason of ``disabled``."""
    @property
    def object(self) -> SharedObject | None:
        """The object that was handed over to this participant, for ``adopted``."""

@final
class ServiceRefused:
    """A link cannot keep the contract of an interest for one owner, whose updates are best effort."""

    @property
    def refusal(self) -> Refusal:
        """The refusal, with the node and the link."""
    @property
    def offer(self) -> dict[str, Any]:
        """The arguments of ``Interest.with_contract`` that every node of the path would grant instead: each
        by itself, unless ``together`` is true."""
    @property
    def together(self) -> bool:
        """True if the offered values suffice only together."""
    def apply(self, interest: Interest) -> Interest | None:
        """Returns the interest with an offered contract: all values if they suffice only together, else
        one of the number of updates, the delay and the fidelity. ``None`` if nothing is offered, or if the
        interest has no contract."""

@final
class EndsTooSlow:
    """The ends need so much of the delay of a contract that the links to an owner cannot keep the rest. A
    granted contract stays in force, but its updates may be later; without one they are best effort."""

    @property
    def owner(self) -> str:
        """The id of the owner."""
    @property
    def ends_s(self) -> float:
        """The time that is debited for the modules at both ends."""
    @property
    def delay_s(self) -> float:
        """The least delay that leaves enough time for the links."""

@final
class World:
    """A participant of a world. Iterate over it for its events; all threads may share it."""

    @property
    def world(self) -> str:
        """The name of the world."""
    @property
    def id(self) -> str:
        """The id of this participant."""
    def create(
        self, path: str, schema: str, values: dict[str, Any] | None = None, /, **fields: Any
    ) -> SharedObject:
        """Creates an object of this participant. The fields are keyword arguments, or a dict.

        Raises ``WorldError`` for a path in use, and for a schema or a value that is wrong.
        """
    def observe(self, interest: Interest | None) -> None:
        """Changes what this participant receives; ``None`` ends it.

        Raises ``WorldError`` for a value out of range.
        """
    def look(
        self,
        position: Iterable[float],
        velocity: Iterable[float] | None = None,
        direction: Iterable[float] | None = None,
    ) -> None:
        """Sets the position, the velocity per second and the direction of view of this participant.
        Without a direction it sees in all directions."""
    def objects(self) -> list[ObjectView]:
        """Returns the present state of all objects, own ones first."""
    def object(self, path: str) -> ObjectView | None:
        """Returns the present state of one object; ``None`` if it is not known."""
    def event(self, timeout_s: float | None = None) -> WorldEvent:
        """Waits for the next event and returns it.

        Raises ``Timeout`` after ``timeout_s`` seconds; ``None``, the default, waits without limit.
        Raises ``ClosedError`` once the world is closed.
        """
    def try_event(self) -> WorldEvent | None:
        """Returns the next event, or ``None`` if there is none."""
    def services(self) -> list[Grant | ServiceRefused | EndsTooSlow | Withdrawn]:
        """Returns the answers to the requested contract since the last call, oldest first."""
    def report(self) -> dict[str, Any]:
        """Returns what this participant knows of the others, and counts."""
    def decide_by(self, decider: Decider | None, workers: int = 1, order: str = "edf") -> None:
        """Decides by a ``Decider`` about the exchanges of own objects; ``None`` decides by the rules
        of observers again. Called by ``paceline.world.decide``."""
    def decide(
        self,
        function: Callable[[PairView], ExchangeTerms | None] | None,
        *,
        workers: int = 1,
        order: str = "edf",
    ) -> None:
        """Decides by a function about the exchanges of own objects with all observers, instead of by
        their rules; ``None`` returns to these.

        ``function`` receives a ``PairView`` and returns an ``ExchangeTerms``, or ``None`` without
        interest. It runs on a thread of Python. After an exception, terms out of range, or more than
        50 ms for the objects of an observer, it is disabled for that observer, and an event gives the
        reason.

        Several ``workers`` call it at once, each for the objects of one observer; ``order`` is
        ``"edf"`` (earliest deadline first) or ``"rm"`` (rate-monotonic).
        """
    @property
    def closed(self) -> bool:
        """True once the world was closed."""
    def close(self) -> None:
        """Leaves the world: the objects of this participant end for all others."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_error: builtins.object) -> None: ...
    def __iter__(self) -> Iterator[WorldEvent]: ...
    def __next__(self) -> WorldEvent: ...
    def __aiter__(self) -> AsyncIterator[WorldEvent]: ...

@final
class Decider:
    """The end of Python's thread for a semantic function."""

    def __new__(cls) -> Self: ...
    def serve(self, function: Callable[[PairView], ExchangeTerms | None]) -> None:
        """Calls ``function`` for each object to decide on, until the world ends or decides
        otherwise."""

@final
class Summary:
    """The result of a pull."""

    @property
    def found(self) -> int:
        """The number of samples found."""
    @property
    def delivered(self) -> int:
        """The number of samples received."""
    @property
    def bytes(self) -> int:
        """The number of payload bytes received."""
    @property
    def missing(self) -> list[tuple[str, int, str]]:
        """The samples that were found but not received, as (publisher, sequence number, reason)."""
    @property
    def nodes(self) -> list[tuple[str, str, int]]:
        """The nodes that sent samples, as (id, name, samples)."""
    @property
    def silent(self) -> list[str]:
        """The names of the buffering nodes that did not answer. Samples stored only there were
        not found."""
    @property
    def more(self) -> bool:
        """True if more samples matched than one pull returns, which is 65,536."""

@final
class Pulled:
    """An iterator over the samples of a pull, ordered by publisher and sequence number."""

    @property
    def found(self) -> int:
        """The number of samples found."""
    @property
    def summary(self) -> Summary | None:
        """The result of the pull; ``None`` until the iterator is exhausted."""
    def __iter__(self) -> Iterator[Sample]: ...
    def __next__(self) -> Sample: ...
    def __aiter__(self) -> AsyncIterator[Sample]: ...

@final
class Buffer:
    """A pull buffer: stores the samples of a tag or pattern, for any node to pull."""

    @property
    def id(self) -> str:
        """The id of the subscription that fills the buffer."""
    @property
    def pattern(self) -> str:
        """The tag or pattern."""
    @property
    def held(self) -> dict[str, int]:
        """The number of samples and bytes stored, as a dict."""
    def close(self) -> None:
        """Ends the buffer and frees its samples."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_error: object) -> None: ...

@final
class Reading:
    """A reading of a clock: the time, and the interval that contains the true time."""

    @property
    def ns(self) -> int:
        """The time in nanoseconds since 1970 UTC."""
    @property
    def earliest_ns(self) -> int:
        """The earliest possible true time, in nanoseconds since 1970 UTC."""
    @property
    def latest_ns(self) -> int:
        """The latest possible true time, in nanoseconds since 1970 UTC."""
    @property
    def error_us(self) -> float | None:
        """The bound of the error in microseconds; ``None`` if it is unknown."""
    @property
    def status(self) -> str:
        """``unsynchronised``, ``synchronised``, ``holdover`` or ``disrupted``."""
    def definitely_before(self, other: Reading) -> bool:
        """Returns true if this time is before ``other`` for every possible error."""

@final
class Clock:
    """The clock of a node; it remains valid after the node is closed, and then holds its last state."""

    @property
    def status(self) -> str:
        """The state: ``unsynchronised``, ``synchronised``, ``holdover`` or ``disrupted``."""
    def now(self) -> Reading:
        """Returns the present time, its bounds and the state of the clock."""
    def stamp(self) -> Reading:
        """Returns the present time; it is later than all earlier stamps of the node."""
    def wait_until_past(self, ns: int, timeout_s: float) -> bool:
        """Blocks until a time has passed with certainty. Returns false after ``timeout_s``."""

@final
class HttpServer:
    """A running HTTP server; it ends when it is closed or no longer referenced."""

    @property
    def url(self) -> str:
        """The URL for a browser."""
    def close(self) -> None:
        """Ends the server. Has no effect on a closed server, or in a forked child."""
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: object, error: object, trace: object, /) -> None: ...

@final
class SubscriptionView:
    """A subscription of any node, as announced to all nodes."""

    @property
    def id(self) -> str:
        """The id of the subscription."""
    @property
    def node(self) -> str:
        """The name of its node."""
    @property
    def pattern(self) -> str:
        """The tag or pattern to which it subscribes."""
    @property
    def form(self) -> str:
        """The requested rate and size, as text."""
    @property
    def within_ms(self) -> float | None:
        """The requested delay bound in milliseconds; ``None`` without one."""
    @property
    def loss(self) -> tuple[int, int] | None:
        """The requested loss tolerance (x, y); ``None`` without one."""
    @property
    def proxy(self) -> str:
        """The place of the scaling: ``publisher`` or ``subscriber``."""

@final
class Bell:
    """A socket that becomes readable when a sample or room arrives, for event loops."""
    def __new__(cls) -> Self: ...
    def fileno(self) -> int:
        """Returns the file descriptor to watch for reading."""
    def arm(self, subscriber: Subscriber) -> None:
        """Rings on the next sample, event or end of the subscriber. Call it before checking the
        queue, or a sample in between is missed."""
    def arm_world(self, world: World) -> None:
        """Rings on the next event of the world. Call it before checking for events."""
    def arm_room(self, publisher: Publisher) -> bool:
        """Rings once a full stream of the publisher has room again. Returns false if no stream
        is full."""
    def disarm(self) -> None:
        """Stops ringing and empties the socket."""

@disjoint_base
class Node:
    def __new__(cls, asked: dict[str, Any]) -> Self: ...
    @property
    def id(self) -> str:
        """The id of the node."""
    @property
    def name(self) -> str:
        """The name of the node."""
    @property
    def fault(self) -> str | None:
        """The panic message if a thread of the node panicked and ended it; ``None`` otherwise."""
    def declare_publisher(self, tag: str, asked: dict[str, Any]) -> Publisher:
        """Declares a publisher; called by ``Node.publisher``."""
    def declare_subscriber(self, pattern: str, asked: dict[str, Any]) -> Subscriber:
        """Declares a subscriber; called by ``Node.subscriber``."""
    def join_world(self, world: str, asked: dict[str, Any]) -> World:
        """Joins a world; called by ``Node.world``."""
    def quotes_native(self, pattern: str, asked: dict[str, Any]) -> list[Quote]:
        """Runs the admission tests without reserving; called by ``Node.quotes``."""
    def declare_buffer(self, pattern: str, asked: dict[str, Any]) -> Buffer:
        """Declares a pull buffer; called by ``Node.buffer``."""
    def clock(self) -> Clock:
        """Returns the clock of the node. It follows that of the host's node, if that has one."""
    def subscriptions(self) -> list[SubscriptionView]:
        """Returns the subscriptions of all reachable nodes. The list is local knowledge: no
        message is sent."""
    def change_one(self, subscription: str, asked: dict[str, Any]) -> None:
        """Changes the request of a subscription on any node; called by ``Node.change``."""
    def begin_pull(self, tag: str, asked: dict[str, Any]) -> Pulled:
        """Starts a pull; called by ``Node.pull``."""
    def nodes(self) -> list[tuple[str, str]]:
        """Returns the reachable nodes as (id, name)."""
    def set_capacity(self, link: str, capacity_bits_per_s: int) -> None:
        """Changes the capacity of a link that has one, in bits per second. Raises ``ValueError``
        if the link has no capacity."""
    def status(self, timeout_s: float = 0.5) -> list[dict[str, Any]]:
        """Returns the status of every node that answers within ``timeout_s`` seconds: the ``nodes`` of
        ``paceline ls --json``, which docs/reference/json.md describes, sorted by name."""
    def serve_http(self, address: str) -> HttpServer:
        """Serves the dashboard, the JSON API and metrics on an address of this host, such as
        ``127.0.0.1:8470`` or ``unix:/run/user/1000/api.sock``; port 0 selects a free one. The server ends when it
        is closed or no longer referenced. Raises ``ValueError`` for an invalid address, and
        :class:`paceline.OpenError` for one that is in use or that other hosts reach."""
    def close(self) -> None:
        """Closes the node with everything declared on it. Has no effect on a closed node, or in
        a forked child."""
