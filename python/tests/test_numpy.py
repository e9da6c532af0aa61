"""numpy arrays, published and received."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import paceline
import pytest
from conftest import SOON_S
from test_put_and_recv import pair


def address(array: object) -> int:
    return int(np.asarray(array).ctypes.data)


def test_a_1080p_frame_is_an_array_over_the_received_bytes(node: paceline.Node) -> None:
    frame = np.arange(1080 * 1920 * 3, dtype=np.uint32).astype(np.uint8).reshape(1080, 1920, 3)
    subscriber = node.subscriber("camera")
    camera = node.publisher("camera", encoding=paceline.encoding_of(frame))
    assert camera.wait_matching(SOON_S)
    camera.put(frame)
    sample = subscriber.recv(SOON_S)
    array = np.asarray(sample)
    assert array.shape == (1080, 1920, 3) and array.dtype == np.uint8
    begin = address(np.frombuffer(sample.payload, np.uint8))
    assert begin == array.ctypes.data and array.nbytes == len(sample) == 6_220_800
    assert not array.flags.writeable and not array.flags.owndata
    assert np.array_equal(array, frame)
    # The array keeps its memory alive.
    del sample, subscriber
    node.close()
    assert int(array[1079, 1919, 2]) == int(frame[1079, 1919, 2])


def test_a_frame_from_a_link_is_not_copied(thin: tuple[paceline.Node, paceline.Node]) -> None:
    robot, operator = thin
    robot.set_capacity("radio", 1_000_000_000)
    picture = np.full((120, 160, 3), 7, np.uint8)
    subscriber = operator.subscriber("camera")
    camera = robot.publisher("camera", encoding=paceline.encoding_of(picture))
    assert camera.wait_matching(SOON_S)
    camera.put(picture)
    sample = subscriber.recv(SOON_S)
    array = np.asarray(sample)
    assert array.shape == (120, 160, 3) and array.ctypes.data == address(np.frombuffer(sample.payload, np.uint8))


def test_bytes_pass_through_a_process_without_a_copy(node: paceline.Node) -> None:
    publisher, subscriber = pair(node)
    payload = bytes(100_000)
    publisher.put(payload)
    assert address(np.frombuffer(subscriber.recv(SOON_S).payload, np.uint8)) == address(np.frombuffer(payload, np.uint8))


def test_pictures_are_scaled_to_arrays_of_the_requested_size(node: paceline.Node) -> None:
    picture = np.full((240, 320, 3), 200, np.uint8)
    subscriber = node.subscriber("camera", size="160x120")
    camera = node.publisher("camera", encoding=paceline.encoding_of(picture))
    assert camera.wait_matching(SOON_S)
    camera.put(picture)
    small = np.asarray(subscriber.recv(SOON_S))
    assert small.shape == (120, 160, 3) and abs(float(small.mean()) - 200) < 2


@pytest.mark.parametrize(
    ("encoding", "length", "shape", "kind"),
    [
        ("video/raw;format=i420;width=64;height=48", 64 * 48 * 3 // 2, (72, 64), "uint8"),
        ("audio/pcm;format=s16le;rate=8000;channels=2", 640, (160, 2), "int16"),
        ("audio/pcmu;rate=8000;channels=1", 160, (160, 1), "uint8"),
        ("image/jpeg", 11, (11,), "uint8"),
        ("video/raw;format=rgb;width=64;height=48", 5, (5,), "uint8"),
        ("video/raw;format=i420;width=3;height=3", 17, (17,), "uint8"),
        ("application/octet-stream", 0, (0,), "uint8"),
    ],
)
def test_the_shape_follows_the_encoding(
    node: paceline.Node, encoding: str, length: int, shape: tuple[int, ...], kind: str
) -> None:
    publisher, subscriber = pair(node)
    publisher.put(bytes(length), encoding=encoding)
    array = np.asarray(subscriber.recv(SOON_S))
    assert array.shape == shape and array.dtype == np.dtype(kind)


def test_arrays_of_any_layout_are_published_in_index_order(node: paceline.Node) -> None:
    publisher, subscriber = pair(node)
    square = np.arange(12, dtype="<f4").reshape(3, 4)
    for array in (square, square[:, ::2], square.T, square[::-1], np.asfortranarray(square), np.float64(1.5)):
        publisher.put(array)
        sent = np.frombuffer(subscriber.recv(SOON_S).payload, np.asarray(array).dtype)
        assert np.array_equal(sent, np.ascontiguousarray(array).ravel())


def test_later_changes_of_an_array_do_not_affect_the_sample(node: paceline.Node) -> None:
    publisher, subscriber = pair(node)
    array = np.zeros(10_000, np.uint8)
    publisher.put(array)
    array[:] = 1
    assert not np.asarray(subscriber.recv(SOON_S)).any()


def test_a_loaned_frame_is_published_without_a_copy(node: paceline.Node) -> None:
    publisher, subscriber = pair(node)
    frame = publisher.loan((1080, 1920, 3))
    assert len(frame) == 6_220_800 and frame.array.shape == (1080, 1920, 3) and frame.array.flags.writeable
    filled = address(frame.array)
    frame.array[:] = 7
    frame.array[1079, 1919] = (1, 2, 3)
    publisher.put(frame)
    sample = subscriber.recv(SOON_S)
    got = np.frombuffer(sample.payload, np.uint8).reshape(1080, 1920, 3)
    assert address(got) == filled
    assert got[0, 0].tolist() == [7, 7, 7] and got[1079, 1919].tolist() == [1, 2, 3]


def test_a_loan_is_valid_for_one_sample(node: paceline.Node) -> None:
    publisher, subscriber = pair(node)
    frame = publisher.loan(10_000)
    publisher.put(frame)
    for use in (lambda: frame.array, lambda: frame.buffer, lambda: publisher.put(frame)):
        with pytest.raises(ValueError, match="another"):
            use()
    assert len(frame) == 10_000 and repr(frame) == "Loan((10000,), 'uint8', 10000 bytes, published)"
    assert len(subscriber.recv(SOON_S)) == 10_000


def test_a_kept_view_of_a_loan_does_not_change_the_sample(node: paceline.Node) -> None:
    publisher, subscriber = pair(node)
    frame = publisher.loan((100, 100), "uint16")
    array, buffer = frame.array, frame.buffer
    array[:] = 5
    assert address(array) == address(np.frombuffer(buffer, np.uint8))
    publisher.put(frame)
    array[:] = 6
    buffer[:2] = b"\x07\x00"
    sample = subscriber.recv(SOON_S)
    got = np.frombuffer(sample.payload, np.uint16)
    assert (got == 5).all() and address(got) != address(array)
    # The views keep their contents, too.
    del frame
    assert array[0, 0] == 7 and array[99, 99] == 6


def test_a_file_is_read_into_a_loan_in_place(node: paceline.Node, tmp_path: Path) -> None:
    publisher, subscriber = pair(node)
    (tmp_path / "picture").write_bytes(bytes(range(256)) * 100)
    frame = publisher.loan(25_600)
    filled = address(np.frombuffer(frame.buffer, np.uint8))
    with (tmp_path / "picture").open("rb") as file:
        assert file.readinto(frame.buffer) == 25_600
    publisher.put_many([frame])
    sample = subscriber.recv(SOON_S)
    assert bytes(sample) == bytes(range(256)) * 100
    assert address(np.frombuffer(sample.payload, np.uint8)) == filled


def test_loans_of_every_kind_and_size(node: paceline.Node) -> None:
    publisher, subscriber = pair(node)
    for shape, dtype in [((2, 3), "<f4"), (0, "uint8"), ((), np.int64), ([4], np.dtype("u2")), (5000, "f8"), ((0, 7), "f8")]:
        frame = publisher.loan(shape, dtype)
        zeros = np.zeros(shape, dtype)
        assert np.array_equal(frame.array, zeros) and frame.array.dtype == zeros.dtype
        frame.array[...] = 3
        publisher.put(frame)
        zeros[...] = 3
        assert bytes(subscriber.recv(SOON_S)) == zeros.tobytes()


def test_invalid_loans_are_refused(node: paceline.Node) -> None:
    publisher, _subscriber = pair(node)
    for shape in (-1, (3, -1), 1.5, "12", None, (2, "3")):
        with pytest.raises(TypeError, match="shape="):
            publisher.loan(shape)  # type: ignore[arg-type]
    for shape in (67_108_865, (8192, 8193), (2**40, 2**40)):
        with pytest.raises(paceline.PublishError, match="at most 67108864"):
            publisher.loan(shape)
    with pytest.raises(TypeError, match="addresses"):
        publisher.loan(3, object)
    with pytest.raises(TypeError):
        publisher.loan(3, "colour")


def test_arrays_of_objects_are_refused(node: paceline.Node) -> None:
    publisher, _subscriber = pair(node)
    with pytest.raises(TypeError, match="addresses"):
        publisher.put(np.array([object()]))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"\(240, 320\)"):
        paceline.encoding_of(np.zeros((240, 320), np.uint8))
    with pytest.raises(ValueError, match="float32"):
        paceline.encoding_of(np.zeros((240, 320, 3), np.float32))


def test_the_package_works_without_numpy() -> None:
    script = "import sys; sys.modules['numpy'] = None; import paceline, paceline.aio; assert 'numpy' not in paceline.__dict__;"
    script += " frame = paceline.open(name='plain').publisher('a').loan(9); frame.buffer[0] = 1; assert len(frame) == 9"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
