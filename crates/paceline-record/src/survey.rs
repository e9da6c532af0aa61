//! What a file holds, by one pass over it.

use crate::body::Body;
use crate::order::Order;
use crate::reader::{Channel, Message, ReadError, Reader};
use crate::recording::ATTACHMENTS;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

/// Of several clocks that differ by more than this a person is told.
const CLOCKS_APART: u64 = 1_000_000_000;

/// A channel, and what is in it.
#[derive(Clone, Debug)]
pub struct Lane {
    /// What the file says of it.
    pub channel: Arc<Channel>,
    /// How its payloads stand in it.
    pub body: Body,
    /// Their media type.
    pub encoding: String,
    /// How many messages.
    pub messages: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Of the largest payload.
    pub bytes_max: u64,
    /// The times of the first and the last by the order chosen.
    pub times: (u64, u64),
    /// The times at which the first and the last came.
    pub came: (u64, u64),
    /// How much later than published they came at least, if they did.
    pub least_lag: Option<u64>,
    /// Messages that are not what their schema says.
    pub broken: u64,
}

impl Lane {
    /// True for the channel on which a recorder of ours tells events.
    #[must_use]
    pub fn is_events(&self) -> bool {
        self.channel.is_events()
    }

    /// True if it is samples: neither what a recorder tells of them nor what is attached to them.
    #[must_use]
    pub fn is_samples(&self) -> bool {
        self.channel.is_samples()
    }

    /// The mean time between two messages; none with less than two of them at different times.
    #[must_use]
    pub fn period(&self) -> Option<u64> {
        let lasts = self.times.1.saturating_sub(self.times.0);
        lasts.checked_div(self.messages.saturating_sub(1)).filter(|period| *period > 0)
    }
}

impl Channel {
    /// True for the channel on which a recorder of ours tells events.
    #[must_use]
    pub fn is_events(&self) -> bool {
        self.metadata.get("paceline").is_some_and(|what| what == "events")
    }

    /// True if it is samples: neither what a recorder tells of them nor what is attached to them.
    #[must_use]
    pub fn is_samples(&self) -> bool {
        !self.is_events() && self.attached_to().is_none()
    }

    /// Of a channel of attachments the number of the one with their samples: each stands before its sample, and has
    /// its times and its sequence number.
    #[must_use]
    pub fn attached_to(&self) -> Option<u16> {
        let attached = self.metadata.get("paceline").is_some_and(|what| what == ATTACHMENTS);
        self.metadata.get("of").filter(|_| attached)?.parse().ok()
    }
}

/// What a file holds.
#[derive(Debug)]
pub struct Survey {
    order: Order,
    /// Its channels by their numbers; only those that have messages.
    pub lanes: BTreeMap<u16, Lane>,
    /// Messages of channels that the file does not say.
    pub strays: u64,
    /// Up to where it is whole.
    pub whole: u64,
    /// Why it could not be read to its end.
    pub end: Option<ReadError>,
}

impl Survey {
    /// Reads a file to its end; `look` sees each message.
    ///
    /// # Errors
    /// [`ReadError`] if not even its beginning can be read.
    pub fn of<R: Read>(
        from: R,
        order: Order,
        mut look: impl FnMut(&Message),
    ) -> Result<Self, ReadError> {
        let mut reader = Reader::new(from)?;
        let mut survey = Self { order, lanes: BTreeMap::new(), strays: 0, whole: 0, end: None };
        loop {
            match reader.next_message() {
                Ok(Some(message)) => {
                    survey.take(&message);
                    look(&message);
                }
                Ok(None) => break,
                Err(error) => {
                    survey.end = Some(error);
                    break;
                }
            }
        }
        (survey.strays, survey.whole) = (reader.strays(), reader.whole());
        Ok(survey)
    }

    fn take(&mut self, message: &Message) {
        let time = self.order.time(message);
        let lane = self.lanes.entry(message.id).or_insert_with(|| {
            let Channel { message_encoding, schema, metadata, .. } = &*message.channel;
            let recorded = metadata.get("paceline").and_then(|_| metadata.get("encoding"));
            let recorded = recorded.map(String::as_str);
            let (body, encoding) = Body::read(message_encoding, schema, recorded, &message.data);
            Lane {
                channel: Arc::clone(&message.channel),
                body,
                encoding,
                messages: 0,
                bytes: 0,
                bytes_max: 0,
                times: (time, time),
                came: (message.log_time, message.log_time),
                least_lag: None,
                broken: 0,
            }
        });
        lane.messages += 1;
        lane.times = (lane.times.0.min(time), lane.times.1.max(time));
        lane.came = (lane.came.0.min(message.log_time), lane.came.1.max(message.log_time));
        let lag = message.log_time.checked_sub(message.publish_time);
        lane.least_lag = match (lane.least_lag, lag) {
            (Some(least), Some(lag)) => Some(least.min(lag)),
            (least, lag) => least.or(lag),
        };
        match lane.body.payload(&message.data) {
            Ok(payload) => {
                lane.bytes += payload.len() as u64;
                lane.bytes_max = lane.bytes_max.max(payload.len() as u64);
            }
            Err(_) => lane.broken += 1,
        }
    }

    /// The times of the first and the last message of the channels that `wanted` says; none if there are none.
    #[must_use]
    pub fn times(&self, wanted: impl Fn(&Lane) -> bool) -> Option<(u64, u64)> {
        let times = self.lanes.values().filter(|lane| wanted(lane)).map(|lane| lane.times);
        times.reduce(|(a, b), (c, d)| (a.min(c), b.max(d)))
    }

    /// By how much the clocks of publishers seem to differ, if it is a lot: what came at once has publish times
    /// that lie so far apart.
    #[must_use]
    pub fn clocks_apart(&self) -> Option<u64> {
        let lanes = || self.lanes.values().filter(|lane| lane.is_samples());
        let early = lanes().any(|lane| lane.least_lag.is_none());
        let lags = || lanes().filter_map(|lane| lane.least_lag);
        let apart = lags().max()?.saturating_sub(if early { 0 } else { lags().min()? });
        (apart > CLOCKS_APART).then_some(apart)
    }
}
