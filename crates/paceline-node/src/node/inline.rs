//! Scalers within the call that passes a sample.

use core::fmt::Debug;
use paceline_proto::control::PublisherSpec;
use paceline_proto::plan::OutputPlan;
use paceline_proto::reason::DropReason;
use paceline_proto::{Kind, RawSample};

/// A scaler that one output has for itself, and that scales within the call that passes a sample.
pub trait InlineScaler: Debug + Send {
    /// Returns the scaled sample; `None` if the rate of the output excludes it.
    ///
    /// # Errors
    /// The reason for which the sample is dropped.
    fn scale(&mut self, sample: &RawSample) -> Result<Option<RawSample>, DropReason>;

    /// Handles the drop of a scaled sample behind the scaler.
    fn handle_dropped(&mut self, kind: Kind);
}

/// Returns the scaler that a new output has for itself, or `None` for a shared scaler.
pub type InlineScalers = fn(&OutputPlan, &PublisherSpec) -> Option<Box<dyn InlineScaler>>;
