//! Flight logs in PX4's ULog format: topics, their messages in file order, messages as JSON.
//!
//! The whole file is read once, at the beginning: header, flags, formats (nested ones and arrays
//! too), subscriptions, and where each data message is. Information, parameters, text, marks of
//! synchronisation and of dropouts, and records of unknown kinds are passed over.
//!
//! A log that ends in the middle of a record gives what is whole. A record that cannot be right
//! ends it there, since nothing behind it can be trusted; a topic that cannot be read is left
//! out. Both are told by [`ULog::warning`].
//!
//! Memory: the file, at most 16 bytes for each of its data messages (which have 13 at least),
//! and at most 32 times the bytes of its formats and subscriptions.

mod json;
mod layout;
mod read;

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
    topics: Vec<Topic>,
    layouts: Layouts,
    index: Vec<Entry>,
    warning: Option<String>,
}

/// One topic of a log: one instance of a message that was subscribed to.
#[derive(Debug, Clone, PartialEq)]
pub struct Topic {
    /// Name of the message's format: letters, digits, `_`, `-` and `/`, at most 128.
    pub name: String,
    /// Number of the instance, from 0: a second sensor of the same kind is 1.
    pub multi_id: u8,
    /// Number of messages in the log, at least 1.
    pub messages: u64,
    /// Longest payload, in bytes.
    pub bytes_max: usize,
    /// Mean rate in Hz: intervals by the time from the first message to the last; 0 for one
    /// message, or no time between.
    pub hz: f64,
    suffix: String,
    layout: usize,
}

impl Topic {
    /// How the topic is called beside others of its log: its name, and `/` and its instance
    /// where the log has several instances of the name.
    #[must_use]
    pub fn suffix(&self) -> &str {
        &self.suffix
    }
}

/// One message of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// Place of its topic in [`ULog::topics`].
    pub topic: usize,
    /// Its own field `timestamp`, in µs; for PX4 since the flight controller's start.
    pub time_us: u64,
    /// Its fields as the log holds them, little-endian, 8 to 65,533 bytes.
    pub payload: &'a [u8],
}

/// Where a data message is.
#[derive(Debug, Clone, Copy)]
struct Entry {
    at: usize,
    len: u16,
    topic: u16,
}

impl ULog {
    /// Reads a log, keeping a copy of its bytes.
    ///
    /// # Errors
    /// [`MediaError::Ulog`] if the bytes do not begin with a ULog header, or if flags say that
    /// this reader would misunderstand the log. Whatever is wrong behind that is a
    /// [`ULog::warning`].
    pub fn parse(bytes: &[u8]) -> Result<Self, MediaError> {
        Self::from_vec(bytes.to_vec())
    }

    /// As [`ULog::parse`], keeping `bytes` without a copy.
    ///
    /// # Errors
    /// Those of [`ULog::parse`].
    pub fn from_vec(bytes: Vec<u8>) -> Result<Self, MediaError> {
        let read::Contents { topics, layouts, index, warning } = read::read(&bytes)?;
        Ok(Self { bytes, topics, layouts, index, warning })
    }

    /// All topics that have messages, in the order in which the log subscribed to them.
    #[must_use]
    pub fn topics(&self) -> &[Topic] {
        &self.topics
    }

    /// What was wrong with the log, though it could be read: where it ended early, and which
    /// topics were left out.
    #[must_use]
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// All messages, in the order of the file. Their times rise within a topic, as a rule, but
    /// not over all of them; some topics of real logs say 0, or one and the same time, in every
    /// message, so that only their places between others tell when they were logged.
    pub fn messages(&self) -> impl ExactSizeIterator<Item = Message<'_>> + Clone {
        self.index.iter().map(|entry| {
            let end = entry.at + usize::from(entry.len);
            let payload = self.bytes.get(entry.at..end).unwrap_or_default();
            let topic = usize::from(entry.topic);
            let time_us = self
                .topics
                .get(topic)
                .and_then(|topic| self.layouts.get(topic.layout)?.time_us(payload))
                .unwrap_or_default();
            Message { topic, time_us, payload }
        })
    }

    /// The fields of a message as one JSON object, in the order of its format.
    ///
    /// Integers and floats become numbers, floats that are not finite `null`, `bool` true or
    /// false, `char` and arrays of it strings up to their first zero byte, other arrays arrays,
    /// nested formats objects. Fields whose names begin with `_padding` are left out. At most
    /// 1 MiB is written.
    ///
    /// # Errors
    /// [`MediaError::UlogMessage`] for a message that is not one of this log, or that is longer
    /// than 1 MiB as JSON.
    pub fn to_json(&self, message: &Message<'_>) -> Result<String, MediaError> {
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
