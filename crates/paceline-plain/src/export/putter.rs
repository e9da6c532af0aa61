//! Puts samples on keys for plain programs.

use super::KEYS_MAX;
use crate::convert::{DELETION, Encodings};
use crate::key::Template;
use crate::mark::Mark;
use crate::session::CLOSES_AFTER;
use paceline::status::DropReason;
use paceline::{Encoding, Node, Sample, Tag};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use zenoh::bytes::Encoding as ZenohEncoding;
use zenoh::pubsub::Publisher;
use zenoh::qos::{CongestionControl, Priority};
use zenoh::sample::Locality;
use zenoh::{Session, Wait};

/// The shortest time between two log lines about drops of one rule.
const WARN_EVERY: Duration = Duration::from_secs(10);

/// The size class of samples, which decides the congestion control.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Lane {
    /// Non-blocking: Zenoh drops a sample that a program does not accept at once.
    Small,
    /// Blocking: Zenoh waits for every reader. Large samples use a priority of their own, because a
    /// blocked put also blocks other puts of the same priority. Messages between the programs of
    /// this host use another one.
    Large,
}

/// The Zenoh publisher for one tag.
struct Output {
    publisher: Publisher<'static>,
    encodings: Encodings<Encoding, ZenohEncoding>,
}

/// Puts the samples of one rule and size class.
pub(super) struct Putter {
    pub(super) node: Node,
    pub(super) session: Session,
    pub(super) mark: Mark,
    pub(super) number: usize,
    /// Converts a tag to a key.
    pub(super) key: Template,
    pub(super) lane: Lane,
    keys: HashMap<Tag, Output>,
    warned: Option<Instant>,
}

impl Putter {
    pub(super) fn new(
        (node, session): (&Node, &Session),
        (number, mark): (usize, Mark),
        key: Template,
        lane: Lane,
    ) -> Self {
        let (node, session, keys) = (node.clone(), session.clone(), HashMap::new());
        Self { node, session, mark, number, key, lane, keys, warned: None }
    }

    /// Undeclares all keys.
    pub(super) fn clear(&mut self) {
        self.keys.clear();
    }

    pub(super) fn put(&mut self, delivery: Sample) {
        if self.keys.len() >= KEYS_MAX && !self.keys.contains_key(&delivery.tag) {
            self.keys.clear();
        }
        if !self.keys.contains_key(&delivery.tag) {
            match self.declare(&delivery.tag) {
                Ok(publisher) => {
                    let output = Output { publisher, encodings: Encodings::default() };
                    self.keys.insert(delivery.tag.clone(), output);
                }
                Err(what) => {
                    self.node.note_dropped(DropReason::NotExported, 1);
                    let (number, tag) = (self.number, &delivery.tag);
                    return tracing::warn!("export {number}: cannot put samples of {tag}: {what}");
                }
            }
        }
        let Some(output) = self.keys.get_mut(&delivery.tag) else { return };
        // The declaration may have taken time.
        if delivery.actuation.is_some_and(|decision| !decision.may_act()) {
            return self.node.note_dropped(DropReason::Stale, 1);
        }
        let began = Instant::now();
        let tag = delivery.tag.clone();
        let put = put(output, self.mark, delivery);
        if let Err(error) = put {
            self.node.note_dropped(DropReason::NotExported, 1);
            tracing::debug!("export {}: {tag}: {error}", self.number);
        } else if self.lane == Lane::Large && began.elapsed() >= CLOSES_AFTER {
            self.node.note_dropped(DropReason::NotExported, 1);
            self.warn_slow(&tag);
        }
    }

    fn warn_slow(&mut self, tag: &Tag) {
        if self.warned.is_none_or(|last| last.elapsed() > WARN_EVERY) {
            self.warned = Some(Instant::now());
            let (number, seconds) = (self.number, CLOSES_AFTER.as_secs());
            tracing::warn!(
                "export {number}: a plain program did not accept a sample of {tag} within \
                 {seconds} s; the sample is dropped and Zenoh closes the connection. Try a lower \
                 rate or a smaller size in a separate export rule"
            );
        }
    }

    fn declare(&self, tag: &Tag) -> Result<Publisher<'static>, String> {
        let key = self.key.fill(tag.as_str()).ok_or("its key would be empty")?;
        let publisher = self.session.declare_publisher(key).allowed_destination(Locality::Remote);
        let publisher = match self.lane {
            Lane::Small => publisher.congestion_control(CongestionControl::Drop),
            Lane::Large => {
                publisher.congestion_control(CongestionControl::Block).priority(Priority::DataLow)
            }
        };
        publisher.wait().map_err(|error| error.to_string())
    }
}

fn put(output: &mut Output, mark: Mark, delivery: Sample) -> zenoh::Result<()> {
    let stamp = mark.stamp(delivery.captured);
    let attachment = delivery.attachment.map(|bytes| bytes.to_vec());
    if delivery.encoding.as_str() == DELETION {
        return output.publisher.delete().attachment(attachment).timestamp(stamp).wait();
    }
    let encoding = output.encodings.export(&delivery.encoding);
    let put = output.publisher.put(delivery.payload).encoding(encoding);
    put.attachment(attachment).timestamp(stamp).wait()
}
