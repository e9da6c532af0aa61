//! The official MCAP library for Python reads recordings, and its protobuf decoder decodes the published
//! samples from Foxglove's schemas.

use super::until;
use crate::host::{Host, arg};
use std::process::{Command, Stdio};

/// Reads a recording with all checks enabled, and prints its content as JSON.
const READ: &str = "
import json, sys, hashlib
from mcap.reader import make_reader
from mcap.stream_reader import StreamReader
from mcap_protobuf.decoder import DecoderFactory
found = {}
with open(sys.argv[1], 'rb') as file:
    reader = make_reader(file, validate_crcs=True, decoder_factories=[DecoderFactory()])
    summary = reader.get_summary()
    for schema, channel, message, decoded in reader.iter_decoded_messages(topics=sys.argv[2:]):
        row = found.setdefault(channel.topic, {'schema': schema.name, 'count': 0, 'first': None})
        row['count'] += 1
        if row['first'] is None:
            fields = {field.name for field, _ in decoded.ListFields()}
            row['first'] = {
                'fields': sorted(fields),
                'format': getattr(decoded, 'format', None),
                'message': getattr(decoded, 'message', None),
                'rate': getattr(decoded, 'sample_rate', None),
                'nanos': decoded.timestamp.seconds * 10**9 + decoded.timestamp.nanos - message.publish_time,
            }
    listed = sum(1 for _ in reader.iter_messages())
    file.seek(0)
    records = list(StreamReader(file, validate_crcs=True).records)
print(json.dumps({
    'found': found,
    'counted': summary.statistics.message_count,
    'listed': listed,
    'chunks': len(summary.chunk_indexes),
    'last': type(records[-1]).__name__,
}))
";

/// Returns a Python interpreter with these modules, if there is one.
pub(crate) fn python(test: &str, modules: &str) -> Option<String> {
    let python = std::env::var("PACELINE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let tried = Command::new(&python)
        .args(["-c", &format!("import {modules}")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if tried.is_ok_and(|status| status.success()) {
        return Some(python);
    }
    println!(
        "skipped: {test} (no {modules} in {python}: install python/tools.txt, or name another Python in PACELINE_PYTHON)"
    );
    None
}

#[test]
fn the_official_reader_finds_the_published_samples() {
    let test = "the_official_reader_finds_the_published_samples";
    let Some(python) = python(test, "mcap, mcap_protobuf") else { return };
    let host = Host::new();
    let (out, lines, sound) = (host.path("run.mcap"), host.path("l.txt"), host.path("s.wav"));
    std::fs::write(&lines, "gr\u{fc}\u{df}\n").unwrap();
    std::fs::write(&sound, super::support::wave(8_000)).unwrap();
    let publishers = [
        host.start(&["pub", "all/camera", "--test-card", "160x120@20"]),
        host.start(&["pub", "all/text", "--file", arg(&lines), "--hz", "20", "--loop"]),
        host.start(&["pub", "all/sound", "--file", arg(&sound), "--loop"]),
    ];
    until("all publish", || {
        let ls = host.run(&["ls", "--json"]).text();
        ["all/camera", "all/text", "all/sound"].iter().all(|tag| ls.contains(tag))
    });
    let record = host.run(&["record", "all/**", "-o", arg(&out), "--duration", "3s"]);
    assert_eq!(record.code, Some(0), "{record:?}");
    drop(publishers);
    let read = Command::new(&python)
        .args(["-c", READ, arg(&out), "all/camera", "all/text", "all/sound"])
        .output()
        .unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let reported: serde_json::Value = serde_json::from_slice(&read.stdout).unwrap();
    let first = |tag: &str| &reported["found"][tag]["first"];
    assert_eq!(reported["found"]["all/camera"]["schema"], "foxglove.CompressedImage");
    assert_eq!(first("all/camera")["format"], "jpeg");
    assert_eq!(
        first("all/camera")["fields"],
        serde_json::json!(["data", "format", "frame_id", "timestamp"])
    );
    assert_eq!(first("all/text")["message"], "gr\u{fc}\u{df}");
    assert_eq!(
        (&first("all/sound")["format"], &first("all/sound")["rate"]),
        (&"pcm-s16".into(), &8_000.into())
    );
    for tag in ["all/camera", "all/text", "all/sound"] {
        assert_eq!(first(tag)["nanos"], 0, "the time within is the time beside");
        assert!(reported["found"][tag]["count"].as_u64().unwrap() > 10, "{reported}");
    }
    assert_eq!(reported["counted"], reported["listed"]);
    assert!(reported["chunks"].as_u64().unwrap() >= 3, "one a second");
    assert_eq!(reported["last"], "Footer");
}
