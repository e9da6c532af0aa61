//! Ctrl-C ends a benchmark in order: what it set up is taken down.

use anyhow::{Context as _, Result, bail};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on SIGINT and SIGTERM are noticed by [`check`] instead of ending the process.
pub(super) fn install() -> Result<()> {
    let flag = INTERRUPTED.get_or_init(Arc::default);
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(flag)).context("signal handler")?;
    }
    Ok(())
}

/// An error once the user has asked to stop.
pub(super) fn check() -> Result<()> {
    if INTERRUPTED.get().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
        bail!("interrupted");
    }
    Ok(())
}

/// Sleeps, or until the user asks to stop.
pub(super) fn sleep(duration: Duration) -> Result<()> {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    sleep_until(super::clock::now().saturating_add(nanos))
}

/// Sleeps until `instant` of [`super::clock`], or until the user asks to stop.
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
