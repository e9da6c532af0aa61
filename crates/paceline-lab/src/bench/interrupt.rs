//! Handles Ctrl-C: a benchmark removes everything that it set up before it ends.

use anyhow::{Context as _, Result, bail};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Installs handlers for SIGINT and SIGTERM. From then on [`check`] notices them and the process
/// does not end.
pub(super) fn install() -> Result<()> {
    let flag = INTERRUPTED.get_or_init(Arc::default);
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(flag)).context("signal handler")?;
    }
    Ok(())
}

/// Returns an error once the user has requested to stop.
pub(super) fn check() -> Result<()> {
    if INTERRUPTED.get().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
        bail!("interrupted");
    }
    Ok(())
}

/// Sleeps for `duration`; returns an error earlier if the user requests to stop.
pub(super) fn sleep(duration: Duration) -> Result<()> {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    sleep_until(super::clock::now().saturating_add(nanos))
}

/// Sleeps until `instant` of [`super::clock`]; returns an error earlier if the user requests to
/// stop.
pub(super) fn sleep_until(instant: u64) -> Result<()> {
    let slice = u64::try_from(Duration::from_millis(100).as_nanos()).unwrap_or(u64::MAX);
    loop {
        check()?;
        let now = super::clock::now();
        if now >= instant {
            return Ok(());
        }
        super::clock::sleep_until(instant.min(now + slice));
    }
}
