//! Ending when the user says so.

use anyhow::Context as _;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The longest time in which a stop goes unnoticed.
pub(crate) const STOP_SLICE: Duration = Duration::from_millis(50);
/// Signals that come so soon after the first are the same wish: `timeout` and runners of scripts send it to the
/// process and to its group.
const SAME_WISH: Duration = Duration::from_millis(250);

/// Becomes true when the command is to end. Clones see the same stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// A stop requested by SIGINT or SIGTERM. Another such signal a moment later ends the process at once.
    pub(crate) fn on_signals() -> anyhow::Result<Self> {
        let stop = Self::default();
        let mut signals =
            Signals::new([SIGINT, SIGTERM]).context("cannot watch for SIGINT and SIGTERM")?;
        let asked = stop.clone();
        let named = std::thread::Builder::new().name("paceline-stop".to_owned());
        named.spawn(move || asked.hear(&mut signals)).context("cannot watch for signals")?;
        Ok(stop)
    }

    /// Asks for the end at the first signal; the process has ended after a second one.
    fn hear(&self, signals: &mut Signals) {
        let mut first = None;
        for _ in signals.forever() {
            self.request();
            let since: Instant = *first.get_or_insert_with(Instant::now);
            if since.elapsed() > SAME_WISH {
                signal_hook::low_level::exit(crate::exit::INTERRUPTED.into());
            }
        }
    }

    /// Asks for the end.
    pub(crate) fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True once the end was asked for.
    pub(crate) fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sleeps until `due` or until the end is asked for, which it returns.
    pub(crate) fn wait_until(&self, due: Instant) -> bool {
        loop {
            if self.requested() {
                return true;
            }
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            std::thread::sleep(left.min(STOP_SLICE));
        }
    }
}

/// SIGHUP: the configuration is to be read again, or the terminal is gone.
#[derive(Debug)]
pub(crate) struct Hangup {
    told: Arc<AtomicBool>,
    had_terminal: bool,
}

impl Hangup {
    /// From now on the signal no longer ends the process.
    pub(crate) fn watch() -> anyhow::Result<Self> {
        let told = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGHUP, Arc::clone(&told))
            .context("cannot watch for SIGHUP")?;
        Ok(Self { told, had_terminal: io::stdin().is_terminal() })
    }

    /// True once for the signals since the last call.
    pub(crate) fn take(&self) -> bool {
        self.told.swap(false, Ordering::Relaxed)
    }

    /// True if the terminal that the command was started in was closed: the kernel says so by the
    /// same signal.
    pub(crate) fn lost_terminal(&self) -> bool {
        self.had_terminal && !io::stdin().is_terminal()
    }
}
