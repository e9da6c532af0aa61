//! Flight logs in PX4's ULog format: topics, their messages in file order, messages as JSON.
//!
//! The whole file is read once, at the beginning: header, flags, formats (also nested ones and arrays),
//! subscriptions, and the position of each data message. Information, parameters, text, synchronisation
//! marks, dropout marks and records of unknown kinds are skipped.
//!
//! A log that ends inside a record returns all whole records. A topic that cannot be read is left out.
//! [`ULog::warning`] reports both.
//!
//! After a damaged place, reading continues at the next record that proves to be one by its content: data of the size of
//! its topic, a synchronisation mark, a subscription, a format, a parameter or a text. [`ULog::damage`] reports these
//! places. The format has no checksums, so damage within the fields of a message is not recognised.
//!
//! Memory: the file, at most 16 bytes for each of its data messages (which have at least 13), and at
//! most 32 times the bytes of its formats and subscriptions.

mod json;
mod layout;
mod read;
mod sure;

use crate::Damage;
use crate::error::MediaError;
use layout::Layouts;

/// A flight log.
///
/// ```no_run
/// use paceline_media::ulog::ULog;
///
/// # let bytes = Vec::new();
/// let log = ULog::parse(&bytes)?;
/// for message in log.messages() {
///     let topic = &log.topics()[message.topic];
///     println!("{} {} {}", message.time_us, topic.suffix(), log.to_json(&message)?);
/// }
/// # Ok::<(), paceline_media::MediaError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ULog {
    bytes: Vec<u8>,
    topics: Vec<ULogTopic>,
    layouts: Layouts,
    index: Vec<Entry>,
    warning: Option<String>,
    damage: Damage,
}

/// One topic of a log: one instance of a subscribed message.
#[derive(Debug, Clone, PartialEq)]
pub struct ULogTopic {
    /// The name of the message's format: letters, digits, `_`, `-` and `/`, at most 128.
    pub name: String,
    /// The number of the instance, from 0: a second sensor of the same kind is 1.
    pub multi_id: u8,
    /// The number of messages in the log, at least 1.
    pub messages: u64,
    /// The longest payload in bytes.
    pub bytes_max: usize,
    /// The mean rate in Hz: the number of intervals divided by the time from the first message to the
    /// last. 0 for a single message, or if that time is 0.
    pub hz: f64,
    suffix: String,
    layout: usize,
}

impl ULogTopic {
    /// Returns the name that distinguishes the topic within its log.
    ///
    /// This is its name, with `/` and its instance if the log has several instances of the name.
    #[must_use]
    pub fn suffix(&self) -> &str {
        &self.suffix
    }
}

/// One message of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ULogMessage<'a> {
    /// The index of its topic in [`ULog::topics`].
    pub topic: usize,
    /// Its own field `timestamp`, in µs; for PX4 since the flight controller's start.
    pub time_us: u64,
    /// Its fields as stored in the log, little-endian, 8 to 65,533 bytes.
    pub payload: &'a [u8],
}

/// The position of a data message.
#[derive(Debug, Clone, Copy)]
struct Entry {
    at: usize,
    len: u16,
    topic: u16,
}

impl ULog {
    /// Reads a log and keeps a copy of its bytes.
    ///
    /// # Errors
    /// [`MediaError::Ulog`] if the bytes do not begin with a ULog header, or if the flags require
    /// unsupported features. Defects behind the header are reported by [`ULog::warning`] and
    /// [`ULog::damage`].
    pub fn parse(bytes: &[u8]) -> Result<Self, MediaError> {
        Self::from_vec(bytes.to_vec())
    }

    /// Reads a log like [`ULog::parse`], and keeps `bytes` without a copy.
    ///
    /// # Errors
    /// The same as [`ULog::parse`].
    pub fn from_vec(bytes: Vec<u8>) -> Result<Self, MediaError> {
        let read::Contents { topics, layouts, index, warning, damage } = read::read(&bytes)?;
        Ok(Self { bytes, topics, layouts, index, warning, damage })
    }

    /// Returns all topics that have messages, in the order of their subscriptions in the log.
    #[must_use]
    pub fn topics(&self) -> &[ULogTopic] {
        &self.topics
    }

    /// Returns a description of defects in a log that could be read: its early end, and topics that were
    /// left out.
    #[must_use]
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Returns the damaged places that were skipped.
    #[must_use]
    pub const fn damage(&self) -> &Damage {
        &self.damage
    }

    /// Returns all messages, in the order of the file.
    ///
    /// Their times usually increase within a topic, but not across topics. Some topics of real logs have
    /// 0, or the same time, in every message; only their positions among the other messages show when
    /// they were logged.
    pub fn messages(&self) -> impl ExactSizeIterator<Item = ULogMessage<'_>> + Clone {
        self.index.iter().map(|entry| {
            let end = entry.at + usize::from(entry.len);
            let payload = self.bytes.get(entry.at..end).unwrap_or_default();
            let topic = usize::from(entry.topic);
            let time_us = self
                .topics
                .get(topic)
                .and_then(|topic| self.layouts.get(topic.layout)?.time_us(payload))
                .unwrap_or_default();
            ULogMessage { topic, time_us, payload }
        })
    }

    /// Returns the fields of a message as one JSON object, in the order of its format.
    ///
    /// Integers and floats become numbers, floats that are not finite `null`, and `bool` true or false.
    /// `char` and arrays of it become strings up to their first zero byte, other arrays become arrays,
    /// and nested formats objects. Fields with names that begin with `_padding` are left out. The text
    /// has at most 1 MiB.
    ///
    /// # Errors
    /// [`MediaError::UlogMessage`] for a message of another log, or one that is longer than 1 MiB as
    /// JSON.
    pub fn to_json(&self, message: &ULogMessage<'_>) -> Result<String, MediaError> {
        let topic = self.topics.get(message.topic);
        let refuse = |reason: &str| MediaError::UlogMessage {
            topic: topic.map_or(message.topic.to_string(), |topic| topic.name.clone()),
            reason: reason.to_owned(),
        };
        let layout = topic.map(|topic| topic.layout).ok_or_else(|| refuse("no such topic"))?;
        json::object(&self.layouts, layout, message.payload).map_err(refuse)
    }
}

#[cfg(test)]
mod tests;
