//! The options and the result of publishing one sample.

use paceline_proto::{DropReason, Encoding, Timestamp};
use std::sync::Arc;

/// Optional properties of one sample in addition to its payload. Unset fields use the declared
/// values.
#[derive(Clone, Debug, Default)]
pub struct PutOptions {
    /// The media type of this sample. Defaults to the declared one, which alone decides about
    /// scaling.
    pub encoding: Option<Encoding>,
    /// The capture time. Defaults to now. Temporal scaling uses it; deadlines do not.
    pub captured: Option<Timestamp>,
    /// Bytes that are delivered unchanged to every subscriber, at most
    /// [`Publisher::ATTACHMENT_BYTES_MAX`](crate::Publisher::ATTACHMENT_BYTES_MAX).
    pub attachment: Option<Arc<[u8]>>,
}

/// The result of publishing one sample: its path inside this node.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PutReport {
    /// The sequence number of the sample.
    pub seq: u64,
    /// The number of outputs that accepted the sample. An output is a stream, or the subscribers on
    /// this node that share a form.
    pub taken: u32,
    /// The number of outputs that dropped the sample. They count the drop by its reason.
    pub dropped: u32,
    /// The reason of the first of these drops. `None` without a drop, and if the subscribers on this
    /// node dropped the sample, each for its own reason.
    pub reason: Option<DropReason>,
    /// The publisher was declared a moment ago, and the sample is buffered until the existing
    /// subscriptions are connected. `taken` does not count the streams that accept it then.
    pub waits: bool,
}
