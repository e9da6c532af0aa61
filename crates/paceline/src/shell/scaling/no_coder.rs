//! In place of the coder, where the codec was left out (feature `h264`).

use super::places::{ALL, Places};
use paceline_proto::{DropReason, Form, Sample};
use paceline_sched::Duration;

/// Cannot decode.
pub(super) struct Coder;

impl Coder {
    pub(super) fn new(form: Form, _: Option<Duration>) -> Self {
        tracing::warn!("video {form}: this build has no video codec; build with the feature h264");
        Self
    }

    pub(super) fn catch_up(&mut self, _: Vec<Sample>) {}

    pub(super) fn serve(&mut self, _: &Sample, places: &mut Places) {
        places.count(ALL, DropReason::CannotScale, 1);
    }

    pub(super) fn finish(&mut self, _: &mut Places) {}
}
