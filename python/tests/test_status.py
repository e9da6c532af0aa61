"""The status of all nodes."""

import paceline
import pytest


def test_the_status_has_the_fields_of_the_json_document(node: paceline.Node) -> None:
    camera = node.publisher("robot/camera", hz=30)
    poses = node.subscriber("robot/*", within_ms=20, loss=(1, 10))
    own = next(found for found in node.status() if found["name"] == node.name)
    assert own["publishers"][0]["tag"] == "robot/camera"
    subscription = own["subscriptions"][0]
    assert (subscription["within_us"], subscription["loss"]) == (20_000, "1/10")
    assert own["dropped"] == {}
    with pytest.raises(ValueError, match="timeout_s"):
        node.status(timeout_s=-1)
    del camera, poses
