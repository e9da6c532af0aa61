//! Files written by the official MCAP library for Python: zstd chunks, Foxglove's schemas, ROS topics.

use crate::host::{Host, arg};
use crate::record::foreign::python;
use std::process::Command;

/// Writes pictures with Foxglove's protobuf package, JSON, and ROS 2 records, in zstd chunks.
const WRITE: &str = "
import sys
from mcap.writer import Writer, CompressionType
from mcap_protobuf.writer import Writer as Protobuf
from foxglove_schemas_protobuf.CompressedImage_pb2 import CompressedImage
picture = open(sys.argv[2], 'rb').read()
with open(sys.argv[1], 'wb') as file:
    writer = Protobuf(file, compression=CompressionType.ZSTD, chunk_size=5000)
    for number in range(10):
        time = 1_700_000_000_000_000_000 + number * 10_000_000
        image = CompressedImage(data=picture, format='jpeg', frame_id='camera')
        image.timestamp.FromNanoseconds(time)
        writer.write_message('/camera/image', image, time, time, number)
    writer.finish()
with open(sys.argv[3], 'wb') as file:
    writer = Writer(file, compression=CompressionType.LZ4)
    writer.start('ros2', 'test')
    schema = writer.register_schema('std_msgs/msg/String', 'ros2msg', b'string data')
    ros = writer.register_channel('/chatter', 'cdr', schema)
    plain = writer.register_channel('state', 'json', 0)
    for number in range(10):
        writer.add_message(ros, number * 1000, bytes([0, 1, 0, 0, number]), 0, number)
        writer.add_message(plain, number * 1000, b'{}', 0, number)
    writer.add_attachment(1, 1, 'calibration', 'text/plain', b'of the camera')
    writer.add_metadata('run', {'place': 'lab'})
    writer.finish()
";

#[test]
fn a_file_of_the_official_library_is_replayed_and_scaled() {
    let test = "a_file_of_the_official_library_is_replayed_and_scaled";
    let modules = "mcap, mcap_protobuf, foxglove_schemas_protobuf.CompressedImage_pb2";
    let Some(python) = python(test, modules) else { return };
    let host = Host::new();
    let (pictures, others) = (host.path("pictures.mcap"), host.path("others.mcap"));
    let picture = host.path("one.jpeg");
    let mut card =
        paceline_media::TestCard::new(paceline_media::Size { width: 320, height: 240 }).unwrap();
    std::fs::write(&picture, card.draw_jpeg(7, 7_000, 80).unwrap()).unwrap();
    let write = Command::new(&python)
        .args(["-c", WRITE, arg(&pictures), arg(&picture), arg(&others)])
        .output()
        .unwrap();
    assert!(write.status.success(), "{}", String::from_utf8_lossy(&write.stderr));

    let sub = ["sub", "camera/image", "--size", "160x120", "--count", "5", "--timeout", "30s"];
    let sub = host.start(&[&sub[..], &["--json", "--read-card"]].concat());
    host.wait_for_subscriptions(1);
    // A newer picture replaces a queued older one: a busy host may need several passes.
    let playing = host.start(&["replay", arg(&pictures), "--loop"]);
    let sub = sub.ended();
    assert_eq!(sub.code, Some(0), "{sub:?}");
    drop(playing);
    let lines = sub.json();
    assert!(lines[..5].iter().all(|line| line["encoding"] == "image/jpeg" && line["width"] == 160));
    assert!(lines[..5].iter().all(|line| line["card_frame"] == 7), "{lines:?}");

    let replay = host.run(&["replay", arg(&others), "--speed", "max", "--wait", "0s"]);
    assert_eq!(replay.code, Some(0), "{replay:?}");
    let reported = replay.text();
    assert!(reported.contains("chatter: 10 messages, 50 bytes"), "{reported}");
    assert!(reported.contains("state: 10 messages, 20 bytes"), "{reported}");
    let judged = host.run(&["judge", arg(&others), "--json"]).json();
    assert_eq!(judged[0]["streams"][0]["verdict"], "unknown");
    assert_eq!(judged[0]["samples"], 20);
}
