"""The HTTP server of a node."""

import json
import urllib.error
import urllib.request

import paceline
import pytest


def test_a_node_serves_its_state_until_the_server_is_closed(node: paceline.Node) -> None:
    camera = node.publisher("robot/camera", hz=30)
    with node.serve_http("127.0.0.1:0") as server:
        with urllib.request.urlopen(f"{server.url}api/v1/state", timeout=5) as answer:
            state = json.load(answer)
        tags = [publisher["tag"] for node in state["nodes"] for publisher in node["publishers"]]
        assert tags == ["robot/camera"]
        with pytest.raises(paceline.OpenError, match="cannot serve HTTP on"):
            node.serve_http(server.url.removeprefix("http://").removesuffix("/"))
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(server.url, timeout=5)
    del camera


def test_an_invalid_or_open_address_is_refused(node: paceline.Node) -> None:
    with pytest.raises(ValueError, match="must be an address with a port"):
        node.serve_http("8470")
    with pytest.raises(paceline.OpenError, match="other hosts reach it"):
        node.serve_http("0.0.0.0:0")
