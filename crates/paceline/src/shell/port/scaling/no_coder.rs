//! Replaces the coder in builds without the codec (feature `h264`).

use super::places::Takers;
use paceline_proto::control::FormBudget;
use paceline_proto::{DropReason, Form, RawSample, Size};
use paceline_sched::Duration;
use std::collections::BTreeSet;

const WHY: &str = "this build has no video codec; build with the feature h264";

/// A coder that fails for every sample.
pub(in crate::shell) struct Coder;

impl Coder {
    pub(super) fn new(form: Form, _: Option<Duration>) -> Self {
        crate::warn_limited!("video {form}: {WHY}");
        Self
    }

    pub(in crate::shell) const fn choosing(_: Option<Size>, _: Option<Duration>) -> Self {
        Self
    }

    pub(in crate::shell) fn choose(&mut self, _: BTreeSet<u64>) {}

    pub(in crate::shell) const fn owes(&self, _: u64) -> bool {
        false
    }

    pub(super) fn keep(&mut self, _: Option<FormBudget>) {}

    pub(super) fn take_bytes(&mut self) -> Option<usize> {
        None
    }

    pub(super) fn continue_rate(&mut self, _: super::thin::Due) {}

    pub(super) fn decode(&mut self, _: &RawSample, _: &mut impl Takers) {}

    pub(super) const fn is_stuck(&self) -> bool {
        true
    }

    pub(in crate::shell) fn serve(&mut self, sample: &RawSample, takers: &mut impl Takers) {
        takers.fail(sample.seq, DropReason::CannotScale, WHY);
    }

    pub(in crate::shell) fn finish(&mut self, _: &mut impl Takers) {}
}
