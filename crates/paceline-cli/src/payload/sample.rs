//! One delivered sample as a line of JSON.

use paceline::delivery::{Actuation, Placement};
use paceline::{Encoding, Sample};
use paceline_media::audio::{AudioFormat, OpusFormat};
use paceline_media::{CardReading, Format, Picture, PixelFormat, Size, png};
use serde::Serialize;
use std::fmt;
use std::time::Instant;

/// One line of `--json`.
#[derive(Serialize)]
pub(crate) struct SampleLine {
    tag: String,
    publisher: String,
    seq: u64,
    age_us: u64,
    late: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    actuation: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fresh_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<&'static str>,
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channels: Option<u8>,
    captured_ns: u64,
    kind: String,
    encoding: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    card_frame: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    card_us: Option<u64>,
}

impl SampleLine {
    /// Creates the line for `delivery`; reads its test card if `with_card`.
    pub(crate) fn new(delivery: &Sample, with_card: bool) -> Self {
        let size = picture_size(delivery);
        let sound = sound_of(delivery.encoding.as_str());
        let card = if with_card { read_card(delivery) } else { None };
        Self {
            tag: delivery.tag.to_string(),
            publisher: delivery.publisher.to_string(),
            seq: delivery.seq,
            age_us: paceline_tool::show::micros(delivery.age),
            late: delivery.late,
            actuation: delivery.actuation.map(|decision| match decision {
                Actuation::Command { .. } => "command",
                Actuation::Safe => "safe",
            }),
            fresh_us: delivery.actuation.and_then(|decision| match decision {
                Actuation::Command { until } => Some(paceline_tool::show::micros(
                    until.saturating_duration_since(Instant::now()),
                )),
                Actuation::Safe => None,
            }),
            order: delivery.placement.map(|place| match place {
                Placement::InOrder => "in_order",
                Placement::Unknown => "unknown",
                Placement::Late => "late",
            }),
            bytes: delivery.payload.len(),
            width: size.map(|size| size.width),
            height: size.map(|size| size.height),
            rate: sound.map(|(rate, _)| rate),
            channels: sound.map(|(_, channels)| channels),
            captured_ns: delivery.captured.nanos,
            kind: delivery.kind.to_string(),
            encoding: delivery.encoding.to_string(),
            card_frame: card.map(|card| card.frame),
            card_us: card.map(|card| card.micros),
        }
    }
}

/// The current size and encoding of the samples.
#[derive(Debug, Default)]
pub(crate) struct LatestForm {
    size: Option<Size>,
    encoding: Encoding,
}

impl LatestForm {
    /// Updates the description from a sample.
    pub(crate) fn take(&mut self, delivery: &Sample) {
        // In a video stream only the I pictures contain the size.
        let size = picture_size(delivery);
        let stays = delivery.kind.is_video() && self.encoding == delivery.encoding;
        self.size = size.or(self.size.filter(|_| stays));
        self.encoding = delivery.encoding.clone();
    }
}

impl fmt::Display for LatestForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.size {
            Some(size) => write!(f, "{size} {}", self.encoding),
            None => self.encoding.fmt(f),
        }
    }
}

/// Returns the rate and the channels of sound; `None` for other encodings.
fn sound_of(encoding: &str) -> Option<(u32, u8)> {
    let plain = encoding.parse().map(|it: AudioFormat| (it.rate, it.channels));
    plain.or_else(|_| encoding.parse().map(|it: OpusFormat| (it.rate, it.channels))).ok()
}

/// Returns the size of a picture; `None` if the payload is no readable picture.
pub(crate) fn picture_size(delivery: &Sample) -> Option<Size> {
    let format: Format = delivery.encoding.as_str().parse().ok()?;
    format.picture_size(&delivery.payload).ok()
}

/// Reads a test card; `None` if the picture is no card.
fn read_card(delivery: &Sample) -> Option<CardReading> {
    let raw = |format, size| Picture::new(format, size, &delivery.payload).ok();
    let picture = match delivery.encoding.as_str().parse().ok()? {
        Format::Jpeg => return paceline_media::read_card_jpeg(&delivery.payload).ok().flatten(),
        Format::Png => {
            let picture = png::decode(&delivery.payload, PixelFormat::I420).ok()?;
            return paceline_media::read_card(&picture.as_picture());
        }
        Format::H264 | Format::H265 | Format::Av1 | Format::Ros(_) => return None,
        Format::I420(size, _) => raw(PixelFormat::I420, size),
        Format::Rgb8(size) => raw(PixelFormat::Rgb8, size),
    };
    paceline_media::read_card(&picture?)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use paceline::status::{NodeId, PublisherId};
    use paceline::{Kind, Tag, Timestamp};
    use std::time::Duration;

    /// A received sample for tests.
    pub(crate) fn delivery(encoding: Encoding, payload: Vec<u8>) -> Sample {
        Sample {
            tag: Tag::new("robot/camera").unwrap(),
            publisher: PublisherId { node: NodeId(1), index: 2 },
            seq: 7,
            captured: Timestamp { nanos: 5, error: 255 },
            age: Duration::from_micros(1_234),
            late: false,
            actuation: None,
            placement: None,
            kind: Kind::Data,
            encoding,
            payload: payload.into(),
            attachment: None,
        }
    }

    #[test]
    fn the_schema_of_a_sample_is_stable() {
        let line = SampleLine::new(&delivery(Encoding::Text, b"abc".to_vec()), true);
        assert_eq!(
            serde_json::to_string(&line).unwrap(),
            r#"{"tag":"robot/camera","publisher":"0000000000000001.2","seq":7,"age_us":1234,"late":false,"bytes":3,"captured_ns":5,"kind":"data","encoding":"text/plain"}"#
        );
        let raw = Encoding::new("video/raw;format=i420;width=2;height=2");
        let line = SampleLine::new(&delivery(raw, vec![0; 6]), false);
        let text = serde_json::to_string(&line).unwrap();
        assert!(text.contains(r#""bytes":6,"width":2,"height":2,"captured_ns""#), "{text}");
        let coded = Encoding::new("audio/opus;rate=16000;channels=1");
        let line = SampleLine::new(&delivery(coded, vec![0; 80]), false);
        let text = serde_json::to_string(&line).unwrap();
        assert!(text.contains(r#""bytes":80,"rate":16000,"channels":1,"captured_ns""#), "{text}");
    }

    #[test]
    fn a_card_is_read_on_request() {
        let mut card = paceline_media::TestCard::new(Size { width: 320, height: 240 }).unwrap();
        let picture = card.draw_jpeg(9, 1_000_001, 80).unwrap();
        let sample = delivery(Encoding::Jpeg, picture);
        let text = serde_json::to_string(&SampleLine::new(&sample, true)).unwrap();
        assert!(text.ends_with(r#""card_frame":9,"card_us":1000001}"#), "{text}");
        assert!(text.contains(r#""width":320,"height":240"#));
    }

    #[test]
    fn a_corrupt_picture_has_no_size() {
        assert_eq!(picture_size(&delivery(Encoding::Jpeg, b"\xff\xd8rubbish".to_vec())), None);
        assert!(read_card(&delivery(Encoding::Jpeg, b"rubbish".to_vec())).is_none());
    }
}
