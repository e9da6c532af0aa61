//! Summarizes a file in one pass.

use crate::body::Body;
use crate::order::Order;
use crate::reader::{Channel, McapReader, Message, ReadError};
use crate::recording::ATTACHMENTS;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

/// Clock differences above this, in nanoseconds, are reported.
const CLOCKS_APART: u64 = 1_000_000_000;

/// A channel with statistics of its messages. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The channel.
    pub channel: Arc<Channel>,
    /// The format of its messages.
    pub body: Body,
    /// The media type of its payloads.
    pub encoding: String,
    /// The number of messages.
    pub messages: u64,
    /// The number of payload bytes.
    pub bytes: u64,
    /// The length of the largest payload in bytes.
    pub bytes_max: u64,
    /// The earliest and the latest time, by the chosen order.
    pub times: (u64, u64),
    /// The earliest and the latest arrival time.
    pub came: (u64, u64),
    /// The smallest delay from publication to arrival. `None` if every message arrived before its
    /// publication time.
    pub least_lag: Option<u64>,
    /// The number of messages that do not conform to their schema.
    pub broken: u64,
}

impl Lane {
    /// Returns true for the event channel of a Paceline recording.
    #[must_use]
    pub fn is_events(&self) -> bool {
        self.channel.is_events()
    }

    /// Returns true for a channel of samples, as opposed to events or attachments.
    #[must_use]
    pub fn is_samples(&self) -> bool {
        self.channel.is_samples()
    }

    /// Returns the mean time between messages. `None` unless two messages have different times.
    #[must_use]
    pub fn period(&self) -> Option<u64> {
        let lasts = self.times.1.saturating_sub(self.times.0);
        lasts.checked_div(self.messages.saturating_sub(1)).filter(|period| *period > 0)
    }
}

impl Channel {
    /// Returns true for the event channel of a Paceline recording.
    #[must_use]
    pub fn is_events(&self) -> bool {
        self.metadata.get("paceline").is_some_and(|what| what == "events")
    }

    /// Returns true for a channel of samples, as opposed to events or attachments.
    #[must_use]
    pub fn is_samples(&self) -> bool {
        !self.is_events() && self.attached_to().is_none()
    }

    /// Returns the number of the sample channel to which a channel of attachments belongs. An
    /// attachment precedes its sample and has the same times and sequence number.
    #[must_use]
    pub fn attached_to(&self) -> Option<u16> {
        let attached = self.metadata.get("paceline").is_some_and(|what| what == ATTACHMENTS);
        self.metadata.get("of").filter(|_| attached)?.parse().ok()
    }
}

/// The summary of a file.
#[derive(Debug)]
pub struct Survey {
    order: Order,
    /// The channels with messages, by number.
    pub lanes: BTreeMap<u16, Lane>,
    /// The number of messages of undeclared channels.
    pub strays: u64,
    /// The offset up to which the file is complete.
    pub whole: u64,
    /// The reason why the file could not be read to its end.
    pub end: Option<ReadError>,
}

impl Survey {
    /// Reads a file to its end and passes each message to `look`.
    ///
    /// # Errors
    /// [`ReadError`] if not even the start of the file is readable.
    pub fn of<R: Read>(
        from: R,
        order: Order,
        mut look: impl FnMut(&Message),
    ) -> Result<Self, ReadError> {
        let mut reader = McapReader::new(from)?;
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

    /// Returns the earliest and the latest time over the channels that satisfy `wanted`.
    #[must_use]
    pub fn times(&self, wanted: impl Fn(&Lane) -> bool) -> Option<(u64, u64)> {
        let times = self.lanes.values().filter(|lane| wanted(lane)).map(|lane| lane.times);
        times.reduce(|(a, b), (c, d)| (a.min(c), b.max(d)))
    }

    /// Returns the apparent difference of the publishers' clocks if it exceeds 1 s. It is estimated
    /// from the smallest delay from publication to arrival of each channel.
    #[must_use]
    pub fn clocks_apart(&self) -> Option<u64> {
        let lanes = || self.lanes.values().filter(|lane| lane.is_samples());
        let early = lanes().any(|lane| lane.least_lag.is_none());
        let lags = || lanes().filter_map(|lane| lane.least_lag);
        let apart = lags().max()?.saturating_sub(if early { 0 } else { lags().min()? });
        (apart > CLOCKS_APART).then_some(apart)
    }
}
