"""What can go wrong. Values that make no sense are a ValueError, objects of the wrong type a TypeError."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._native import Refusal, Unpromised

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
]


class Error(Exception):
    """Everything that Paceline raises, beside ValueError and TypeError for what was written wrongly."""


class ClosedError(Error):
    """The node, publisher or subscriber was closed."""


class ForkError(Error, RuntimeError):
    """This process was forked after a node was opened; the node's threads are in the parent only."""


class OpenError(Error):
    """The node could not be opened: its folder, a link, an endpoint."""


class PublishError(Error, ValueError):
    """The publisher could not be declared, or the sample not be published."""


class SubscribeError(Error, ValueError):
    """The subscription could not be declared."""


class ChangeError(Error):
    """The subscription did not change: it has ended, or its node did not answer."""


class PullError(Error):
    """There is nothing to pull, and why."""


class Timeout(Error, TimeoutError):
    """Nothing came within the time given."""


class Refused(Error):
    """The answer no, with the number that did not fit and what would be promised instead.

    Nobody can promise anything of a publisher that does not say how often it publishes: then ``reason`` is
    ``rate_unknown``, and there is no node, link or offer.

    ``offer`` are keyword arguments: ``node.subscriber(tag, **{**asked, **refused.offer})`` asks for what was offered.
    """

    def __init__(self, refusal: "Refusal | Unpromised") -> None:
        super().__init__(str(refusal))
        self.refusal = refusal
        self.reason: str = refusal.reason
        self.node: str = getattr(refusal, "node", "")
        self.link: str = getattr(refusal, "link", "")
        self.needed_bytes_per_s: int = getattr(refusal, "needed_bytes_per_s", 0)
        self.available_bytes_per_s: int = getattr(refusal, "available_bytes_per_s", 0)
        self.offer: dict[str, Any] = getattr(refusal, "offer", {})
        self.offers: list[dict[str, Any]] = getattr(refusal, "offers", [])
