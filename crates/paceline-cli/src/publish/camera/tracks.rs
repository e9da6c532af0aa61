//! The pictures of one track.

use super::super::news::News;
use paceline_edge::{Depacketizer, Gate, RtpEvent, RtpPacket, TrackFormat};
use paceline_media::stream::Properties;
use paceline_media::{Format, MediaError};

/// A track on its way to samples.
pub(super) struct Track {
    pub(super) format: TrackFormat,
    depacketizer: Depacketizer,
    gate: Option<Gate>,
    events: Vec<RtpEvent>,
}

/// A sample of a track.
pub(super) struct Sample {
    pub(super) bytes: Vec<u8>,
    pub(super) time: i64,
}

impl Track {
    /// Returns a track with the parameter sets of its description.
    pub(super) fn new(format: TrackFormat, sets: &[Vec<u8>]) -> Self {
        let sets: Vec<&[u8]> = sets.iter().map(Vec::as_slice).collect();
        let gate = format.codec().map(|codec| Gate::new(codec, &sets));
        Self { format, depacketizer: Depacketizer::new(format), gate, events: Vec::new() }
    }

    /// Takes a packet, and returns the samples that it completes.
    pub(super) fn push(&mut self, packet: &RtpPacket<'_>, news: &News) -> Vec<Sample> {
        self.depacketizer.push(packet, &mut self.events);
        let mut samples = Vec::new();
        for event in self.events.drain(..) {
            match (event, &mut self.gate) {
                (RtpEvent::Unit { time, bytes }, None) => samples.push(Sample { bytes, time }),
                (RtpEvent::Unit { time, bytes }, Some(gate)) => match gate.take(&bytes) {
                    Ok(bytes) => samples.push(Sample { bytes, time }),
                    Err(fault) => news.fault(fault),
                },
                (RtpEvent::Fault(fault), gate) => {
                    gate.iter_mut().for_each(Gate::lose);
                    news.fault(fault);
                }
            }
        }
        samples
    }

    /// Notes that a sample was not taken: those that need it cannot be decoded.
    pub(super) fn lose(&mut self) {
        self.gate.iter_mut().for_each(Gate::lose);
    }

    /// Returns the properties of a sample.
    pub(super) fn properties(
        &self,
        sample: &[u8],
        hz: Option<f64>,
    ) -> Result<Properties, MediaError> {
        let encoding = self.format.encoding();
        let (size, stated) = match (self.format.codec(), self.format) {
            (Some(codec), _) => {
                let info = codec.info(sample)?;
                (info.map(|info| info.size), info.and_then(|info| info.hz))
            }
            (None, TrackFormat::Jpeg) => (Some(Format::Jpeg.picture_size(sample)?), None),
            (None, _) => (None, None),
        };
        Ok(Properties { encoding, size, hz: stated.or(hz) })
    }
}
