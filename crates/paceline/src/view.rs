//! A look at what a subscription gets, for whoever shows it.

use crate::shell::sink::Sink;
use crate::subscriber::Delivery;
use std::sync::Arc;

/// Keeps the newest sample of a subscription while it lasts. The samples are those that the subscriber gets:
/// nothing more is asked of any link.
pub struct View {
    sink: Arc<Sink>,
}

impl View {
    pub(crate) fn new(sink: Arc<Sink>) -> Self {
        sink.seen().watch();
        Self { sink }
    }

    /// The newest sample since this view was opened.
    #[must_use]
    pub fn newest(&self) -> Option<Delivery> {
        self.sink.seen().newest()
    }

    /// True once the subscription has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.sink.is_closed()
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.sink.seen().leave();
    }
}
