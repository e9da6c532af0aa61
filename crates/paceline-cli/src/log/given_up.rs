//! Messages of plain programs that are larger than a node takes. Zenoh lets go of them while they come, piece by
//! piece, and tells nobody but its own log: it is read here, so that they are counted like all that is dropped.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, Filter};

/// Where Zenoh says it, and how that begins. The version of Zenoh is pinned, and a test sends one that is too large.
const TARGET: &str = "zenoh_transport::unicast::universal::rx";
const BEGIN: &str = "Defragmentation buffer full";

static WATCHED: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);

/// From now on they are counted.
pub(crate) fn watch() {
    if !WATCHED.swap(true, Ordering::Relaxed) {
        tracing::callsite::rebuild_interest_cache();
    }
}

/// How many there were since this was last asked.
pub(crate) fn take() -> u64 {
    COUNT.swap(0, Ordering::Relaxed)
}

/// Counts them.
pub(super) struct GivenUp;

impl<S: Subscriber> Layer<S> for GivenUp {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut found = Found(false);
        event.record(&mut found);
        COUNT.fetch_add(u64::from(found.0), Ordering::Relaxed);
    }
}

/// What is looked at: nothing at all until somebody watches.
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

/// True once a message begins so.
struct Found(bool);

impl Visit for Found {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            let mut begin = Begin(BEGIN.as_bytes());
            // It ends where the text differs, or is known: what else is said here is long, and comes often.
            let _ = write!(begin, "{value:?}");
            self.0 |= begin.0.is_empty();
        }
    }
}

/// What of the beginning was not written yet; an error once it is known whether the text begins so.
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
    fn what_is_given_up_is_counted_and_nothing_else() {
        let layer = GivenUp.with_filter(Watched);
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
            let say = |what: &str| {
                tracing::trace!(target: TARGET, "{}", what);
                tracing::trace!(target: "zenoh_transport::unicast", "{}", what);
            };
            say("Defragmentation buffer full: too soon");
            assert_eq!(take(), 0, "nobody watches");
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
