//! The samples of one track on their way to the publisher, over all connections.

use super::super::media::Message;
use super::super::news::News;
use super::super::source::Piece;
use super::refusal::Ended;
use super::tracks::Track;
use anyhow::anyhow;
use paceline_edge::{Captured, TrackFormat, TrackKind, UnitFault};
use paceline_media::stream::Properties;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Instant;

/// The highest plausible rate of pictures in Hz.
const HZ_MAX: f64 = 1_000.0;

/// A track over all connections.
pub(super) struct Lane {
    pub(super) kind: TrackKind,
    pub(super) news: Arc<News>,
    to: SyncSender<Message>,
    /// The format of the first connection, which the publisher declared.
    format: Option<TrackFormat>,
    state: State,
}

enum State {
    /// Nothing arrived.
    New,
    /// The first sample waits for the second one, which shows the rate.
    Held { piece: Piece, time: i64, properties: Properties },
    /// The properties were sent.
    Begun,
}

/// A sample with its times.
pub(super) struct Arrived {
    pub(super) bytes: Vec<u8>,
    /// The RTP time.
    pub(super) time: i64,
    pub(super) at: Instant,
    pub(super) captured: Captured,
}

impl Lane {
    pub(super) fn new(kind: TrackKind, news: Arc<News>, to: SyncSender<Message>) -> Self {
        Self { kind, news, to, format: None, state: State::New }
    }

    /// Checks the format of a new connection.
    pub(super) fn check(&mut self, format: TrackFormat, camera: &str) -> Result<(), Ended> {
        let before = *self.format.get_or_insert(format);
        if before == format {
            return Ok(());
        }
        Err(Ended::Final(anyhow!(
            "{camera}: it sends {} now, it sent {} before; start paceline pub again, so that subscribers know the new type",
            format.encoding(),
            before.encoding()
        )))
    }

    /// Gives a sample to the publisher. `rate` is the RTP clock rate, `hz` the rate of the description.
    pub(super) fn give(
        &mut self,
        track: &Track,
        arrived: Arrived,
        (rate, hz): (u32, Option<f64>),
    ) -> Result<(), Ended> {
        let Arrived { bytes, time, at, captured } = arrived;
        let piece = |bytes: Vec<u8>| Piece {
            payload: bytes.into(),
            arrived: Some(at),
            captured: Some(captured),
        };
        match std::mem::replace(&mut self.state, State::Begun) {
            State::Begun => self.send(Message::Sample(piece(bytes))),
            State::Held { piece: first, time: before, properties } => {
                let hz = distance_hz(time, before, rate);
                self.send(Message::Head(Some(Properties { hz, ..properties })))?;
                self.send(Message::Sample(first))?;
                self.send(Message::Sample(piece(bytes)))
            }
            State::New => match track.properties(&bytes, hz) {
                // A picture whose headers cannot be read shows no properties: the next one may.
                Err(_) => {
                    self.state = State::New;
                    self.news.fault(UnitFault::Malformed("a first picture without a size"));
                    Ok(())
                }
                Ok(properties) if properties.hz.is_none() => {
                    self.state = State::Held { piece: piece(bytes), time, properties };
                    Ok(())
                }
                Ok(properties) => {
                    self.send(Message::Head(Some(properties)))?;
                    self.send(Message::Sample(piece(bytes)))
                }
            },
        }
    }

    /// Sends a message. Waits for room only for the properties and the first samples, before there is a publisher.
    fn send(&self, message: Message) -> Result<(), Ended> {
        self.to.send(message).map_err(|_| Ended::Unwanted)
    }
}

/// Returns the rate of two samples with these RTP times.
fn distance_hz(time: i64, before: i64, rate: u32) -> Option<f64> {
    let ticks = u32::try_from(time.abs_diff(before)).ok().filter(|ticks| *ticks > 0)?;
    let hz = f64::from(rate) / f64::from(ticks);
    // Hundredths: RTP times are rounded.
    let hz = (hz * 100.0).round() / 100.0;
    (hz > 0.0 && hz <= HZ_MAX).then_some(hz)
}
