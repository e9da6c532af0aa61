//! Counts the messages of plain programs that exceed a node's size limit. Zenoh discards them
//! during defragmentation and reports them only in its log. This layer counts those log events, so
//! that the node's drop counters include them.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, Filter};

/// The target and the beginning of the log message. The version of Zenoh is pinned, and a test
/// sends a message that is too large.
const TARGET: &str = "zenoh_transport::unicast::universal::rx";
const BEGIN: &str = "Defragmentation buffer full";

static WATCHED: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);

/// Starts the counting.
pub fn watch() {
    if !WATCHED.swap(true, Ordering::Relaxed) {
        tracing::callsite::rebuild_interest_cache();
    }
}

/// Returns the number of messages since the last call.
pub fn take() -> u64 {
    COUNT.swap(0, Ordering::Relaxed)
}

/// The layer that counts the messages.
pub(super) struct GivenUp;

impl<S: Subscriber> Layer<S> for GivenUp {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut found = Found(false);
        event.record(&mut found);
        COUNT.fetch_add(u64::from(found.0), Ordering::Relaxed);
    }
}

/// A filter that selects the messages; it selects nothing until [`watch`] is called.
pub(super) struct Watched;

impl<S> Filter<S> for Watched {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        WATCHED.load(Ordering::Relaxed) && metadata.target() == TARGET
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        match WATCHED.load(Ordering::Relaxed) && metadata.target() == TARGET {
            true => Interest::always(),
            false => Interest::never(),
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let watched = WATCHED.load(Ordering::Relaxed);
        Some(if watched { LevelFilter::TRACE } else { LevelFilter::OFF })
    }
}

/// True if the message begins with [`BEGIN`].
struct Found(bool);

impl Visit for Found {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            let mut begin = Begin(BEGIN.as_bytes());
            // Formatting stops at the first difference or after a full match, because other
            // messages of this target are long and frequent.
            let _ = write!(begin, "{value:?}");
            self.0 |= begin.0.is_empty();
        }
    }
}

/// The rest of the expected beginning. Writing returns an error once the result is known.
struct Begin(&'static [u8]);

impl fmt::Write for Begin {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let most = text.len().min(self.0.len());
        let (here, rest) = self.0.split_at(most);
        if text.as_bytes().get(..most) != Some(here) {
            return Err(fmt::Error);
        }
        self.0 = rest;
        if rest.is_empty() { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt as _;

    #[test]
    fn only_discarded_messages_are_counted() {
        let layer = GivenUp.with_filter(Watched);
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
            let say = |what: &str| {
                tracing::trace!(target: TARGET, "{}", what);
                tracing::trace!(target: "zenoh_transport::unicast", "{}", what);
            };
            say("Defragmentation buffer full: too soon");
            assert_eq!(take(), 0, "nothing is counted yet");
            watch();
            for what in ["Defragmentation buffer", "", "Received: Frame", "Defragmentation SN"] {
                say(what);
            }
            assert_eq!(take(), 0);
            say("Defragmentation buffer full");
            say("Defragmentation buffer full: 67108900 bytes. Capacity: 67108864.");
            tracing::trace!(target: TARGET, "Defragmentation {} full: {}", "buffer", 7);
            assert_eq!((take(), take()), (3, 0));
        });
    }
}
