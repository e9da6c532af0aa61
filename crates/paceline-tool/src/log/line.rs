//! The format of log lines. Each event is a single line, and repeated messages of Zenoh are
//! limited.

use paceline::LogLimit;
use paceline::text::escape;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Writes the fields of an event, including its message. Fields may contain text from a neighbour
/// or a plain program, so special characters are escaped.
pub(super) fn fields() -> impl for<'writer> FormatFields<'writer> + Send + Sync + 'static {
    let write = |to: &mut Writer<'_>, field: &tracing::field::Field, value: &dyn fmt::Debug| {
        let value = format!("{value:?}");
        match field.name() {
            "message" => write!(to, "{}", escape(&value)),
            name => write!(to, "{name}={}", escape(&value)),
        }
    };
    debug_fn(write).delimited(" ")
}

/// Formats events by `inner`. Peers can cause many warnings and errors of Zenoh, so these are rate
/// limited per source line. Paceline limits its own messages at their origin.
pub(super) struct Limited<E> {
    inner: E,
    /// The limits by source line; Zenoh has a finite number of such lines.
    limits: Mutex<BTreeMap<(&'static str, u32), Arc<LogLimit>>>,
}

impl<E> Limited<E> {
    pub(super) const fn new(inner: E) -> Self {
        Self { inner, limits: Mutex::new(BTreeMap::new()) }
    }

    /// Returns the limit that applies to an event.
    fn limit(&self, event: &Event<'_>) -> Option<Arc<LogLimit>> {
        let about = event.metadata();
        if !about.target().starts_with("zenoh") || *about.level() > Level::WARN {
            return None;
        }
        let place = (about.file().unwrap_or_default(), about.line().unwrap_or_default());
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        Some(limits.entry(place).or_default().clone())
    }
}

impl<S, N, E> FormatEvent<S, N> for Limited<E>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    E: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut to: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let Some(limit) = self.limit(event) else {
            return self.inner.format_event(context, to, event);
        };
        // A suppressed event writes nothing, not even a line end.
        let Some(suppressed) = limit.pass() else { return Ok(()) };
        let mut line = String::new();
        self.inner.format_event(context, Writer::new(&mut line), event)?;
        writeln!(to, "{}{suppressed}", line.trim_end_matches('\n'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use tracing_subscriber::fmt;
    use tracing_subscriber::layer::SubscriberExt as _;

    /// Returns the lines that `log` writes.
    fn lines(log: impl FnOnce()) -> Vec<String> {
        #[derive(Clone, Default)]
        struct Shared(Arc<Mutex<Vec<u8>>>);
        impl io::Write for Shared {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().unwrap().write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let written = Shared::default();
        let to = written.clone();
        let layer = fmt::layer().with_writer(move || to.clone()).fmt_fields(fields());
        let layer = layer.without_time().with_ansi(false).map_event_format(Limited::new);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn foreign_text_stays_on_one_line_without_control_characters() {
        let name = "robot\n\x1b[2J ERROR all is lost\u{202e}";
        let lines = lines(|| {
            tracing::warn!(%name, "node {name} is gone");
            tracing::warn!("plain");
        });
        let shown = "robot\\n\\u{1b}[2J ERROR all is lost\\u{202e}";
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].ends_with(&format!("node {shown} is gone name={shown}")), "{lines:?}");
        assert!(lines[1].ends_with("line::tests: plain"), "{lines:?}");
    }

    #[test]
    fn repeated_messages_of_zenoh_are_logged_once_per_ten_seconds() {
        let lines = lines(|| {
            for number in 0..1_000 {
                tracing::error!(target: "zenoh_transport::x", "bad bytes {number}");
                tracing::info!(target: "zenoh_transport::x", "info {}", number);
            }
            tracing::error!(target: "zenoh_link", "another");
        });
        assert_eq!(lines.len(), 1_002, "{lines:?}");
        assert!(lines[0].contains("bad bytes 0") && lines[1_001].contains("another"));
    }
}
