//! The samples of one track on their way to the publisher, over all connections.

use super::super::media::Message;
use super::super::news::News;
use super::super::source::Piece;
use super::pace::Pace;
use super::queue::{LaneQueue, NoRoom};
use super::refusal::Ended;
use super::tracks::Track;
use anyhow::anyhow;
use paceline_edge::{Captured, TrackFormat, TrackKind, UnitFault};
use paceline_media::stream::Properties;
use std::sync::Arc;
use std::time::Instant;

/// The most samples that wait for the rate.
const HELD_MAX: usize = 5;

/// A track over all connections.
pub(super) struct Lane {
    pub(super) kind: TrackKind,
    pub(super) news: Arc<News>,
    to: LaneQueue,
    /// The format of the first connection, which the publisher declared.
    format: Option<TrackFormat>,
    state: State,
    pace: Pace,
}

enum State {
    /// Nothing arrived.
    New,
    /// The first samples wait for the rate.
    Held { pieces: Vec<Piece>, properties: Properties },
    /// The properties were sent.
    Begun,
}

/// A sample with its times.
pub(super) struct Arrived {
    pub(super) bytes: Vec<u8>,
    pub(super) at: Instant,
    pub(super) captured: Captured,
}

impl Lane {
    pub(super) fn new(kind: TrackKind, news: Arc<News>, to: LaneQueue) -> Self {
        Self { kind, news, to, format: None, state: State::New, pace: Pace::default() }
    }

    /// Checks the format of a new connection.
    pub(super) fn check(&mut self, format: TrackFormat, camera: &str) -> Result<(), Ended> {
        // The samples and times of another connection show no rate.
        self.pace = Pace::default();
        if matches!(self.state, State::Held { .. }) {
            self.state = State::New;
        }
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

    /// Notes the RTP time of a packet.
    pub(super) fn heard(&mut self, time: i64) {
        self.pace.note(time);
    }

    /// Gives a sample to the publisher. `rate` is the RTP clock rate, `hz` the rate of the description. Returns false if there is
    /// no room: the publisher takes none, and a video must go on with a key picture.
    pub(super) fn give(
        &mut self,
        track: &Track,
        arrived: Arrived,
        (rate, hz): (u32, Option<f64>),
    ) -> Result<bool, Ended> {
        let Arrived { bytes, at, captured } = arrived;
        let properties = match &self.state {
            State::New => match track.properties(&bytes, hz) {
                Ok(properties) => Some(properties),
                // A picture whose headers cannot be read shows no properties: the next one may.
                Err(_) => {
                    self.news.fault(UnitFault::Malformed("a first picture without a size"));
                    return Ok(true);
                }
            },
            State::Held { .. } | State::Begun => None,
        };
        let payload = bytes.into();
        let piece = Piece { payload, arrived: Some(at), captured: Some(captured), room: None };
        match std::mem::replace(&mut self.state, State::Begun) {
            State::Begun => self.send(piece),
            State::New => {
                let Some(properties) = properties else { return Ok(true) };
                self.begin(vec![piece], properties, rate)
            }
            State::Held { mut pieces, properties } => {
                pieces.push(piece);
                self.begin(pieces, properties, rate)
            }
        }
    }

    /// Sends the properties and the first samples, once the rate is known.
    fn begin(
        &mut self,
        pieces: Vec<Piece>,
        properties: Properties,
        rate: u32,
    ) -> Result<bool, Ended> {
        let known = properties.hz.is_some() || self.pace.is_known(rate) || pieces.len() >= HELD_MAX;
        if !known {
            self.state = State::Held { pieces, properties };
            return Ok(true);
        }
        let hz = properties.hz.or_else(|| self.pace.hz(rate));
        let head = Message::Head(Some(Properties { hz, ..properties }));
        let mut took = self.sent(self.to.send(head))?;
        for piece in pieces {
            took &= self.send(piece)?;
        }
        Ok(took)
    }

    /// Sends a sample without waiting: a camera does not wait either. Returns false if there is no room.
    fn send(&self, piece: Piece) -> Result<bool, Ended> {
        self.sent(self.to.offer(piece, Instant::now()))
    }

    /// Counts a sample for which there was no room. The end of the sound's receiver does not end the pictures.
    fn sent(&self, result: Result<(), NoRoom>) -> Result<bool, Ended> {
        match result {
            Ok(()) => Ok(true),
            Err(NoRoom::Full) => {
                self.news.full();
                Ok(false)
            }
            Err(NoRoom::Stopped) => {
                self.news.stopped();
                Ok(false)
            }
            Err(NoRoom::Gone) if self.kind == TrackKind::Sound => Ok(true),
            Err(NoRoom::Gone) => Err(Ended::Unwanted),
        }
    }
}
