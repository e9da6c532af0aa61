//! Views of the samples that a subscription receives, for displays.

use crate::Sample;
use crate::shell::sink::Sink;
use paceline_node::deliver::Seen;
use std::sync::Arc;

/// A view of the newest sample of a subscription. Created by [`Node::view`](crate::Node::view).
///
/// The view shares the samples of the subscriber and requests nothing from any link.
pub struct View {
    sink: Arc<Sink>,
}

impl View {
    pub(crate) fn new(sink: Arc<Sink>) -> Self {
        sink.delivery().watch();
        Self { sink }
    }

    /// Returns the newest sample since this view was opened.
    #[must_use]
    pub fn newest(&self) -> Option<Sample> {
        self.sink.delivery().seen()?.newest()
    }

    /// Returns the newest video picture at which decoding can start, since this view was opened.
    #[must_use]
    pub fn newest_start(&self) -> Option<Sample> {
        self.sink.delivery().seen()?.newest_start()
    }

    /// Returns the newest sample of each tag since this view was opened, by tag; of at most 64 tags.
    #[must_use]
    pub fn newest_of_tags(&self) -> Vec<Sample> {
        self.sink.delivery().seen().map(Seen::newest_of_tags).unwrap_or_default()
    }

    /// Returns true if the subscription has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.sink.is_closed()
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.sink.delivery().unwatch();
    }
}
