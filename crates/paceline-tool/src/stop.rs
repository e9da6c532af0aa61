//! Ending on signals.

use anyhow::Context as _;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum delay until a stop is noticed.
pub const STOP_SLICE: Duration = Duration::from_millis(50);
/// Further signals within this time count as the same request: `timeout` and script runners signal the
/// process and also its process group.
const SAME_WISH: Duration = Duration::from_millis(250);

/// A flag that requests the end of the command. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Creates a stop that SIGINT or SIGTERM requests. A further signal after 250 ms exits at once.
    pub fn on_signals() -> anyhow::Result<Self> {
        let stop = Self::default();
        let mut signals =
            Signals::new([SIGINT, SIGTERM]).context("cannot watch for SIGINT and SIGTERM")?;
        let asked = stop.clone();
        let named = std::thread::Builder::new().name("paceline-stop".to_owned());
        named.spawn(move || asked.hear(&mut signals)).context("cannot watch for signals")?;
        Ok(stop)
    }

    /// Requests the stop at the first signal; exits the process at the second.
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

    /// Requests the stop.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns true once the stop was requested.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sleeps until `due`, or until the stop is requested; returns true in that case.
    pub fn wait_until(&self, due: Instant) -> bool {
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

/// SIGHUP: requests a reload, or reports that the terminal was closed.
#[derive(Debug)]
pub struct Hangup {
    received: Arc<AtomicBool>,
    had_terminal: bool,
}

impl Hangup {
    /// Installs the handler; the signal no longer ends the process.
    pub fn watch() -> anyhow::Result<Self> {
        let received = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGHUP, Arc::clone(&received))
            .context("cannot watch for SIGHUP")?;
        Ok(Self { received, had_terminal: io::stdin().is_terminal() })
    }

    /// Returns true if the signal arrived since the last call.
    pub fn take(&self) -> bool {
        self.received.swap(false, Ordering::Relaxed)
    }

    /// Returns true if the terminal of the command was closed, which the kernel reports by the same signal.
    pub fn lost_terminal(&self) -> bool {
        self.had_terminal && !io::stdin().is_terminal()
    }
}
