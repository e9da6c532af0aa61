"""Publishes the topics of a small robot as rmw_zenoh does, without ROS 2.

    pip install eclipse-zenoh rosbags numpy pillow
    python examples/ros2/session.py tcp/localhost:7447

session.mcap is a recording of it, made with `paceline record 'robot/**'`. Keys, attachments and publishers are those of rmw_zenoh, the
publishers are Zenoh's own, and rosbags serializes the messages as CDR. No ROS 2 program takes part.
"""

import io
import struct
import sys
import time

import numpy as np
import zenoh
import zenoh.ext
from PIL import Image as Picture
from rosbags.typesys import Stores, get_typestore

SECONDS = 6
TYPES = get_typestore(Stores.ROS2_JAZZY)
TIME = TYPES.types["builtin_interfaces/msg/Time"]
HEADER = TYPES.types["std_msgs/msg/Header"]
WIDTH, HEIGHT = 160, 120


class Topic:
    """A publisher of one topic, with the sequence number and id that its attachments contain."""

    def __init__(self, session, name, kind, latched=False):
        package, _, message = kind.split("/")
        digest = TYPES.hash_rihs01(kind)
        self.kind, self.sent = kind, 0
        self.gid = bytes((sum(name.encode()) + at) % 256 for at in range(16))
        key = f"0/{name}/{package}::msg::dds_::{message}_/{digest}"
        history = {}
        if latched:
            # As rmw_zenoh for reliable and transient_local.
            history = {
                "cache": zenoh.ext.CacheConfig(max_samples=1),
                "publisher_detection": True,
                "sample_miss_detection": zenoh.ext.MissDetectionConfig(sporadic_heartbeat=0.5),
            }
        self.publisher = zenoh.ext.declare_advanced_publisher(session, key, **history)

    def put(self, message):
        self.sent += 1
        attachment = struct.pack("<qqB", self.sent, time.time_ns(), 16) + self.gid
        self.publisher.put(bytes(TYPES.serialize_cdr(message, self.kind)), attachment=attachment)


def header(frame):
    now = time.time_ns()
    return HEADER(stamp=TIME(sec=now // 10**9, nanosec=now % 10**9), frame_id=frame)


def picture(number):
    """A gradient with a square that moves by 4 pixels per picture."""
    pixels = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    pixels[:, :, 0] = (np.arange(HEIGHT) // 8 * 16)[:, None]
    pixels[:, :, 2] = 64
    at = number * 4 % (WIDTH - 24)
    pixels[48:72, at : at + 24] = (255, 255, 0)
    return pixels


def image(number):
    data = picture(number)
    kind = TYPES.types["sensor_msgs/msg/Image"]
    step = WIDTH * 3
    return kind(header("camera"), HEIGHT, WIDTH, "rgb8", 0, step, data.reshape(-1))


def compressed(number):
    file = io.BytesIO()
    Picture.fromarray(picture(number)).save(file, "JPEG", quality=75)
    kind = TYPES.types["sensor_msgs/msg/CompressedImage"]
    data = np.frombuffer(file.getvalue(), np.uint8)
    return kind(header("camera"), "rgb8; jpeg compressed bgr8", data)


def imu(number):
    types = TYPES.types
    point = types["geometry_msgs/msg/Vector3"]
    turn = types["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0)
    unknown = np.full(9, -1.0)
    kind = types["sensor_msgs/msg/Imu"]
    spin, pull = point(0.0, 0.0, 0.01 * number), point(0.0, 0.0, 9.81)
    return kind(header("imu"), turn, unknown, spin, unknown, pull, unknown)


def frames():
    types = TYPES.types
    move = types["geometry_msgs/msg/Transform"](
        types["geometry_msgs/msg/Vector3"](0.2, 0.0, 0.4),
        types["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0),
    )
    frame = types["geometry_msgs/msg/TransformStamped"](header("base_link"), "camera", move)
    return types["tf2_msgs/msg/TFMessage"]([frame])


def main():
    config = zenoh.Config()
    config.insert_json5("mode", '"client"')
    config.insert_json5("connect/endpoints", f'["{sys.argv[1]}"]')
    text = TYPES.types["std_msgs/msg/String"]
    with zenoh.open(config) as session:
        camera = Topic(session, "camera/image_raw", "sensor_msgs/msg/Image")
        jpeg = Topic(session, "camera/image_raw/compressed", "sensor_msgs/msg/CompressedImage")
        motion = Topic(session, "imu/data", "sensor_msgs/msg/Imu")
        chatter = Topic(session, "chatter", "std_msgs/msg/String")
        static = Topic(session, "tf_static", "tf2_msgs/msg/TFMessage", latched=True)
        static.put(frames())
        for number in range(SECONDS * 20):
            motion.put(imu(number))
            if number % 4 == 0:
                camera.put(image(number // 4))
                jpeg.put(compressed(number // 4))
            if number % 20 == 0:
                chatter.put(text(f"hello {number // 20}"))
            time.sleep(0.05)


if __name__ == "__main__":
    main()
