//! Delivery by time: commands that are never stale, samples in the order of their times, samples with the publisher's
//! spacing, and groups of streams that are released at the same instant.
//!
//! See [`SubscriberBuilder::fresh_within`](crate::SubscriberBuilder::fresh_within),
//! [`SubscriberBuilder::ordered`](crate::SubscriberBuilder::ordered),
//! [`SubscriberBuilder::spacing`](crate::SubscriberBuilder::spacing),
//! [`SubscriberBuilder::max_jitter`](crate::SubscriberBuilder::max_jitter) and
//! [`SubscriberBuilder::sync_group`](crate::SubscriberBuilder::sync_group).

use std::fmt;

pub use paceline_node::Actuation;
pub use paceline_node::deliver::{
    BufferLimitError, Decisions, LateArrival, OrderedBy, Placement, Resumption, Silence,
    SpacingReport, SyncReport, TimeBuffering, TimedMethod, TimedStatus,
};

/// The safe action of [`SubscriberBuilder::fresh_within`](crate::SubscriberBuilder::fresh_within).
#[non_exhaustive]
pub enum Otherwise {
    /// Delivers nothing; the event [`SubscriberEvent::Silent`](crate::SubscriberEvent::Silent) reports the silence.
    Hold,
    /// Delivers one sample with [`Actuation::Safe`], whose payload is zero in every byte and as long as the last
    /// command.
    Zero,
    /// Calls a function on a thread of the library. It must not block.
    Call(Box<dyn Fn(&Silence) + Send + Sync>),
}

impl Otherwise {
    /// Calls `act` when the stream falls silent. It must not block.
    pub fn call(act: impl Fn(&Silence) + Send + Sync + 'static) -> Self {
        Self::Call(Box::new(act))
    }
}

impl fmt::Debug for Otherwise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hold => "Hold",
            Self::Zero => "Zero",
            Self::Call(_) => "Call",
        })
    }
}
