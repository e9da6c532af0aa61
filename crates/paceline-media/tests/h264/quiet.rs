//! The codec reports errors by its events and writes nothing to standard error.

use openh264::OpenH264API;
use openh264::encoder::{Encoder, EncoderConfig, RateControlMode};
use openh264::formats::YUVSlices;
use paceline_media::TestCard;
use paceline_media::h264::Transcoder;
use std::process::Command;

use crate::support::{sides, size, slices, transcode};

/// Set in the child process whose standard error is checked.
const INSIDE: &str = "PACELINE_TEST_INSIDE";

/// Returns units of an encoder that prints nothing itself: without a rate it has no warning to print.
fn units() -> Vec<Vec<u8>> {
    let config = EncoderConfig::new().rate_control_mode(RateControlMode::Off).num_threads(1);
    let mut encoder = Encoder::with_api_config(OpenH264API::from_source(), config).unwrap();
    let mut card = TestCard::new(size("320x240")).unwrap();
    let (width, height) = sides(card.size());
    let mut unit = |number: u64| {
        let [luma, cb, cr] = card.draw(number, number * 40_000).planes().unwrap();
        let strides = (width, width / 2, width / 2);
        let picture = YUVSlices::new((luma, cb, cr), (width, height), strides);
        encoder.encode(&picture).unwrap().to_vec()
    };
    (0..6).map(&mut unit).collect()
}

#[test]
fn no_input_writes_to_standard_error() {
    if std::env::var_os(INSIDE).is_some() {
        let units = units();
        for damage in 0..200 {
            let mut damaged = units.clone();
            let unit = &mut damaged[damage % 6];
            let at = damage * 7919 % unit.len();
            unit[at] ^= 0xff;
            // A complete stream first: another size is decoded and encoded.
            let these = if damage == 0 { &units } else { &damaged };
            let mut transcoder = Transcoder::new(Some(size("160x120")), 10.0).unwrap();
            let output = transcode(&mut transcoder, slices(these), |_| true);
            assert_eq!(output.events.len(), units.len());
        }
        return;
    }
    let this = std::env::current_exe().unwrap();
    let name = "quiet::no_input_writes_to_standard_error";
    let run = Command::new(this)
        .args(["--exact", "--nocapture", name])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    assert!(String::from_utf8_lossy(&run.stdout).contains("1 passed"), "{run:?}");
    assert_eq!(String::from_utf8_lossy(&run.stderr), "");
}
