"""Raw pictures: their encoding."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["encoding_of"]


def encoding_of(picture: "NDArray[np.uint8] | Any") -> str:
    """The encoding of an array of shape (height, width, 3), red, green and blue from 0 to 255.

    Only with it can subscribers ask for another size, and get arrays of this shape.
    """
    shape = tuple(getattr(picture, "shape", ()))
    kind = str(getattr(picture, "dtype", type(picture).__name__))
    if len(shape) != 3 or shape[2] != 3 or kind != "uint8":
        raise ValueError(f"an array of shape {shape} and type {kind}: a picture has shape (height, width, 3) and type uint8")
    return f"video/raw;format=rgb;width={shape[1]};height={shape[0]}"
