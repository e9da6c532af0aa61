//! Logging to standard error, with a filter that can change at run time.

mod given_up;
mod line;

pub use given_up::{take as take_given_up, watch as watch_given_up};

use crate::exit;
use crate::show;
use given_up::{GivenUp, Watched};
use line::Limited;
use std::io::IsTerminal as _;
use std::sync::OnceLock;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, fmt, reload};

/// The environment variable with the filter.
const VARIABLE: &str = "PACELINE_LOG";
/// The default filter.
const DEFAULT: &str = "warn";
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
/// The error message for an invalid filter.
pub const RULE: &str = "must be one of off, error, warn, info, debug or trace, or a list of \
     TARGET=LEVEL such as \"warn,paceline=debug\"";

static LOG: OnceLock<Log> = OnceLock::new();

/// The log of this process.
struct Log {
    filter: reload::Handle<EnvFilter, Registry>,
    /// The filter from a flag or the environment; a configuration file does not override it.
    chosen: Option<String>,
}

/// Starts logging. `flag` overrides the environment, which overrides configuration files.
///
/// # Errors
/// Returns a usage error if the environment contains an invalid filter.
pub fn start(flag: Option<&str>) -> anyhow::Result<()> {
    let named = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
    if let (None, Some(text)) = (flag, &named) {
        check(text).map_err(|rule| exit::usage(format!("{VARIABLE} '{text}': {rule}")))?;
    }
    let chosen = flag.or(named.as_deref());
    let (filter, handle) = reload::Layer::new(filter(chosen.unwrap_or(DEFAULT)));
    let lines = fmt::layer().with_writer(|| show::Stderr).fmt_fields(line::fields());
    let lines = lines.with_ansi(std::io::stderr().is_terminal());
    // The journal adds the time itself.
    let lines = match is_journal() {
        true => lines.without_time().map_event_format(Limited::new).boxed(),
        false => lines.map_event_format(Limited::new).boxed(),
    };
    // A second start, in a test, has no effect.
    let lines = lines.with_filter(filter);
    let given_up = GivenUp.with_filter(Watched);
    if tracing_subscriber::registry().with(lines).with(given_up).try_init().is_ok() {
        let _ = LOG.set(Log { filter: handle, chosen: chosen.map(str::to_owned) });
    }
    Ok(())
}

/// Applies the filter of a configuration file, unless a flag or the environment has set one; `None`
/// restores the default.
pub fn configure(text: Option<&str>) {
    let Some(log) = LOG.get().filter(|log| log.chosen.is_none()) else { return };
    if let Err(error) = log.filter.reload(filter(text.unwrap_or(DEFAULT))) {
        tracing::error!("the log filter is unchanged: {error}");
    }
}

/// Returns true if a flag or the environment has set the filter.
pub fn is_overridden() -> bool {
    LOG.get().is_some_and(|log| log.chosen.is_some())
}

/// Returns the environment variable that passes such a filter on to a child process.
pub fn for_child() -> Option<(&'static str, String)> {
    Some((VARIABLE, LOG.get()?.chosen.clone()?))
}

/// Parses a filter for the command line.
pub fn argument(text: &str) -> Result<String, String> {
    check(text).map(|()| text.to_owned())
}

/// Checks a filter; the error names the valid values.
pub fn check(text: &str) -> Result<(), String> {
    let known = |part: &str| match part.rsplit_once('=') {
        Some((target, level)) => !target.is_empty() && LEVELS.contains(&level),
        None => LEVELS.contains(&part),
    };
    let fits = text.split(',').all(known) && EnvFilter::try_new(text).is_ok();
    if fits { Ok(()) } else { Err(RULE.to_owned()) }
}

/// Returns the filter for `text`, which must be valid.
///
/// Zenoh's messages are reduced to errors unless `text` names it. Zenoh warns about deliberate
/// settings of Paceline, such as disabled gossip or a socket in use by another process. Its
/// sessions report an error for data that arrives just after an undeclaration, which happens
/// whenever a command ends.
fn filter(text: &str) -> EnvFilter {
    let silent = text == "off" || text.contains("zenoh");
    let quiet = "zenoh=error,zenoh::api::session=off";
    // The client of cameras logs addresses, which may contain a password.
    let text = format!("{text},retina=off");
    EnvFilter::new(if silent { text } else { format!("{text},{quiet}") })
}

/// Returns true if standard error is connected to the journal.
fn is_journal() -> bool {
    let Ok(named) = std::env::var("JOURNAL_STREAM") else { return false };
    let Ok(stat) = rustix::fs::fstat(std::io::stderr()) else { return false };
    named == format!("{}:{}", stat.st_dev, stat.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_levels_and_targets_with_levels() {
        for right in ["off", "warn", "trace", "info,zenoh=warn", "paceline=debug", "a::b=off"] {
            assert_eq!(check(right), Ok(()), "{right}");
        }
        for wrong in ["", "wran", "WARN ", "paceline", "paceline=", "=debug", "paceline=loud", "a,"]
        {
            assert_eq!(check(wrong), Err(RULE.to_owned()), "{wrong}");
        }
    }

    #[test]
    fn zenoh_logs_only_if_the_filter_names_it() {
        let parts = |text: &str| {
            let text = filter(text).to_string();
            let mut parts: Vec<String> = text.split(',').map(str::to_owned).collect();
            parts.sort();
            parts
        };
        assert_eq!(parts("info"), ["info", "retina=off", "zenoh::api::session=off", "zenoh=error"]);
        assert_eq!(parts("off"), ["off", "retina=off"]);
        assert_eq!(parts("debug,zenoh=info"), ["debug", "retina=off", "zenoh=info"]);
    }
}
