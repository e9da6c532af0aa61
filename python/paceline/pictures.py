"""The encoding of raw pictures."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["encoding_of"]


def encoding_of(picture: "NDArray[np.uint8] | Any") -> str:
    """Returns the encoding of an array of shape (height, width, 3) with red, green and blue from 0
    to 255.

    >>> camera = node.publisher("robot/camera", encoding=paceline.encoding_of(frame))

    Subscribers can request another size, and get arrays of this shape, only if it is declared.

    Raises ValueError for another shape or element type.
    """
    shape = tuple(getattr(picture, "shape", ()))
    kind = str(getattr(picture, "dtype", type(picture).__name__))
    if len(shape) != 3 or shape[2] != 3 or kind != "uint8":
        raise ValueError(f"an array of shape {shape} and type {kind}: a picture has shape (height, width, 3) and type uint8")
    return f"video/raw;format=rgb;width={shape[1]};height={shape[0]}"
