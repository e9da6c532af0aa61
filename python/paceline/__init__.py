"""Real-time publish/subscribe: every subscriber gets each stream at its own rate, size and
deadline.

>>> import paceline
>>> node = paceline.open()
>>> camera = node.publisher("robot/camera", hz=30)
>>> pictures = node.subscriber("robot/**", max_hz=10, within_ms=200)
"""

import atexit as _atexit
import os as _os

from ._native import (
    Adapted,
    Buffer,
    Changed,
    Clock,
    Reading,
    ChangeRefused,
    Excess,
    Feedback,
    Grant,
    GrantedHop,
    Heard,
    HttpServer,
    Loan,
    Measured,
    NoSpare,
    Resumed,
    Silent,
    Warned,
    Withdrawn,
    Payload,
    Quote,
    Publisher,
    PublisherStatus,
    Pulled,
    PutReport,
    Refusal,
    Sample,
    Subscriber,
    SubscriptionStatus,
    SubscriptionView,
    Summary,
    BestEffort,
    EndsTooSlow,
    ExchangeTerms,
    Interest,
    ObjectView,
    PairView,
    ServiceRefused,
    SharedObject,
    World,
    WorldEvent,
)
from ._native import after_fork as _after_fork
from .callback import Callback
from .errors import (
    ChangeError,
    ClosedError,
    Error,
    ForkError,
    OpenError,
    PublishError,
    PullError,
    Refused,
    SubscribeError,
    Timeout,
    WorldError,
)
from .node import Link, Node, open
from .node import close_all as _close_all
from .pictures import encoding_of

__all__ = [
    "Adapted",
    "Buffer",
    "Callback",
    "ChangeError",
    "ChangeRefused",
    "Changed",
    "Clock",
    "Reading",
    "ClosedError",
    "Error",
    "Excess",
    "Feedback",
    "ForkError",
    "Grant",
    "GrantedHop",
    "Heard",
    "HttpServer",
    "Link",
    "Loan",
    "Measured",
    "NoSpare",
    "Node",
    "OpenError",
    "Resumed",
    "Silent",
    "Warned",
    "Withdrawn",
    "Payload",
    "Quote",
    "PublishError",
    "Publisher",
    "PublisherStatus",
    "PullError",
    "Pulled",
    "PutReport",
    "Refusal",
    "Refused",
    "Sample",
    "SubscribeError",
    "Subscriber",
    "SubscriptionStatus",
    "SubscriptionView",
    "Summary",
    "Timeout",
    "BestEffort",
    "EndsTooSlow",
    "ExchangeTerms",
    "Interest",
    "ObjectView",
    "PairView",
    "ServiceRefused",
    "SharedObject",
    "World",
    "WorldEvent",
    "WorldError",
    "encoding_of",
    "open",
]

_os.register_at_fork(after_in_child=_after_fork)
_atexit.register(_close_all)
