"""Semantic functions in Python: which objects are exchanged with whom, when and how exactly."""

import threading
from collections.abc import Callable

from ._native import Decider, ExchangeTerms, PairView, World

__all__ = ["decide"]


def decide(
    world: World,
    function: Callable[[PairView], ExchangeTerms | None] | None,
    workers: int = 1,
    order: str = "edf",
) -> None:
    """Decides by ``function`` about the exchanges of the objects of ``world``; see :meth:`World.decide`.

    The function runs on threads of its own, as many as ``workers``, which end with the world or the next call.
    """
    if function is None:
        world.decide_by(None)
        return
    if not callable(function):
        raise TypeError(f"function={function!r}: it must be callable")
    decider = Decider()
    world.decide_by(decider, workers, order)
    for _ in range(workers):
        threading.Thread(target=decider.serve, args=(function,), name="paceline-decide", daemon=True).start()
