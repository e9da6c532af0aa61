//! Streams as GStreamer writes them.

use paceline_media::h264::{Class, ParameterSets, split};
use std::process::Command;

/// Returns the types of the NAL units.
fn types(unit: &[u8]) -> Vec<u8> {
    let codes = unit.windows(4).filter(|code| code[..3] == [0, 0, 1]);
    codes.map(|code| code[3] & 0x1f).collect()
}

/// `config-interval=-1` puts the parameter sets before each slice of a key picture.
#[test]
fn parameter_sets_before_each_slice_begin_no_pictures() {
    let test = "parameter_sets_before_each_slice_begin_no_pictures";
    let line = "-q videotestsrc num-buffers=20 ! video/x-raw,width=320,height=240,framerate=25/1 ! x264enc key-int-max=5 \
         sliced-threads=true threads=4 tune=zerolatency ! h264parse config-interval=-1 ! \
         video/x-h264,stream-format=byte-stream,alignment=nal ! fdsink fd=1";
    let ran = Command::new("gst-launch-1.0").args(line.split_whitespace()).output();
    let Some(stream) = ran.ok().filter(|ran| ran.status.success()).map(|ran| ran.stdout) else {
        println!("skipped: {test} (no gst-launch-1.0 with x264enc and h264parse)");
        return;
    };
    let units: Vec<_> = split(&stream).map(Result::unwrap).collect();
    assert_eq!(units.len(), 20);
    let mut sets = ParameterSets::new();
    for (number, unit) in units.iter().enumerate() {
        assert_eq!(unit.class == Class::I, number % 5 == 0, "picture {number}");
        let published = types(&sets.complete(unit.bytes, unit.class));
        let first = published.iter().position(|kind| matches!(kind, 1 | 5)).unwrap();
        let slices = &published[first..];
        assert!(
            slices.len() > 1 && slices.iter().all(|kind| matches!(kind, 1 | 5)),
            "{published:?}"
        );
    }
    // The stream has the repeated sets that this test is for.
    let repeated = types(units[0].bytes);
    assert!(repeated.windows(3).any(|types| types == [5, 7, 8]), "{repeated:?}");
}
