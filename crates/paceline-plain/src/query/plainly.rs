//! Conversions between Zenoh's queries and replies and the messages between nodes.

use super::message::{Ask, Sample, Stamp, Value};
use crate::{convert, history, ros};
use std::time::Duration;
use zenoh::Wait;
use zenoh::bytes::Encoding;
use zenoh::key_expr::KeyExpr;
use zenoh::query::Query;
use zenoh::sample::Sample as ZenohSample;
use zenoh::time::{NTP64, Timestamp, TimestampId};

/// Converts a query of a program here.
pub(super) fn ask(query: &Query, patience: Duration) -> Ask {
    let value = query.payload().map(|payload| Value {
        encoding: query.encoding().cloned().unwrap_or_default().to_string(),
        payload: convert::payload(payload),
    });
    Ask {
        key: query.key_expr().to_string(),
        parameters: query.parameters().to_string(),
        patience_ms: u32::try_from(patience.as_millis()).unwrap_or(u32::MAX),
        value,
        attachment: query.attachment().map(convert::payload),
    }
}

/// Sends an answer to a program here.
///
/// A subscriber queries a history twice, and drops the second answer by its source info. That does not cross links, so a
/// ROS 2 message gets the time and the publisher of its attachment as a timestamp, by which subscribers drop it too.
pub(super) fn reply(query: &Query, mut sample: Sample) -> zenoh::Result<()> {
    if sample.stamp.is_none() && history::is_history(query.key_expr()) {
        let attachment = sample.attachment.as_deref();
        sample.stamp = attachment.and_then(ros::published).map(|(nanos, publisher)| {
            let ntp64 = NTP64::from(Duration::from_nanos(nanos)).as_u64();
            Stamp { ntp64, id: publisher }
        });
    }
    let stamp = stamp(&sample);
    let Sample { key, attachment, value: Value { encoding, payload }, .. } = sample;
    let attachment = attachment.map(|bytes| bytes.to_vec());
    let key = KeyExpr::try_from(key)?;
    let reply = query.reply(key, payload).encoding(Encoding::from(encoding));
    reply.attachment(attachment).timestamp(stamp).wait()
}

pub(super) fn stamp(sample: &Sample) -> Option<Timestamp> {
    let stamp = sample.stamp?;
    Some(Timestamp::new(NTP64(stamp.ntp64), TimestampId::try_from(&stamp.id).ok()?))
}

/// Converts an answer of a program here.
pub(super) fn answer(sample: &ZenohSample) -> Sample {
    let stamp = sample
        .timestamp()
        .map(|stamp| Stamp { ntp64: stamp.get_time().as_u64(), id: stamp.get_id().to_le_bytes() });
    Sample {
        key: sample.key_expr().to_string(),
        stamp,
        attachment: sample.attachment().map(convert::payload),
        value: Value {
            encoding: sample.encoding().to_string(),
            payload: convert::payload(sample.payload()),
        },
    }
}
