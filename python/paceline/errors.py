"""The exceptions of this package. Arguments out of range raise ValueError, those of the wrong
type TypeError."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._native import Refusal, BestEffort

__all__ = [
    "ChangeError",
    "ClosedError",
    "Error",
    "ForkError",
    "OpenError",
    "PublishError",
    "PullError",
    "Refused",
    "SubscribeError",
    "Timeout",
    "WorldError",
]


class Error(Exception):
    """The base class of all exceptions here. Invalid arguments raise ValueError or TypeError
    instead."""


class ClosedError(Error):
    """The node, publisher or subscriber was closed."""


class ForkError(Error, RuntimeError):
    """This process was forked after a node was opened. The node's threads exist only in the
    parent."""


class OpenError(Error):
    """The node could not be opened: its runtime folder, a link or an endpoint failed."""


class PublishError(Error, ValueError):
    """The publisher could not be declared, or the sample could not be published."""


class SubscribeError(Error, ValueError):
    """The subscription could not be declared."""


class ChangeError(Error):
    """The subscription did not change: it has ended, or its node did not answer."""


class PullError(Error):
    """The pull found nothing. The message gives the reason."""


class WorldError(Error, ValueError):
    """The world could not be joined, or an object or an interest is wrong."""


class Timeout(Error, TimeoutError):
    """No sample or event arrived within the timeout."""


class Refused(Error):
    """Admission was refused. Gives the limit that was exceeded and the contracts that would be
    granted.

    ``offer`` contains keyword arguments that would be granted now:

    >>> try:
    ...     node.subscriber("lidar", within_ms=100, require=True)
    ... except paceline.Refused as refused:
    ...     node.subscriber("lidar", **{"within_ms": 100, **refused.offer})

    A publisher that declares no rate cannot get a contract. ``reason`` is then ``rate_unknown``,
    and ``node``, ``link`` and ``offer`` are empty.
    """

    def __init__(self, refusal: "Refusal | BestEffort") -> None:
        super().__init__(str(refusal))
        self.refusal = refusal
        self.reason: str = refusal.reason
        self.node: str = getattr(refusal, "node", "")
        self.link: str = getattr(refusal, "link", "")
        self.needed_bytes_per_s: int = getattr(refusal, "needed_bytes_per_s", 0)
        self.available_bytes_per_s: int = getattr(refusal, "available_bytes_per_s", 0)
        self.offer: dict[str, Any] = getattr(refusal, "offer", {})
        self.offers: list[dict[str, Any]] = getattr(refusal, "offers", [])
