//! Blocking waits. They release the interpreter's lock and proceed in slices, so that Ctrl-C ends
//! them.

use crate::errors;
use crate::life::{self, Waiting};
use paceline::Arrival;
use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// The interval between checks for signals. Python runs its Ctrl-C handler only in the main thread,
/// and only after a call returns to it.
pub(crate) const SLICE: Duration = Duration::from_millis(50);
/// The greatest timeout in seconds. A longer one counts as no timeout.
const TIMEOUT_MAX_S: f64 = 1e9;

/// The result of one look.
pub(crate) enum Look<T> {
    /// The value is available.
    Here(T),
    /// Not yet; the arrival notifies when to look again.
    Wait(Arrival),
}

/// Converts a timeout in seconds to an instant. `None` means no timeout.
pub(crate) fn end_of(timeout_s: Option<f64>) -> PyResult<Option<Instant>> {
    let Some(seconds) = timeout_s else { return Ok(None) };
    if seconds.is_nan() || seconds < 0.0 {
        return Err(errors::value(format!(
            "timeout_s={seconds}: it must be 0 or more; None waits without end"
        )));
    }
    Ok((seconds < TIMEOUT_MAX_S).then(|| Instant::now() + Duration::from_secs_f64(seconds)))
}

/// Repeats `look` until it returns a value. Returns `None` if `until` passed first.
pub(crate) fn until<T: Send>(
    py: Python<'_>,
    until: Option<Instant>,
    mut look: impl FnMut() -> PyResult<Look<T>> + Send,
) -> PyResult<Option<T>> {
    loop {
        let slice = Instant::now() + SLICE;
        let end = until.map_or(slice, |until| until.min(slice));
        // Counts this thread as waiting until it has the interpreter's lock again.
        let waiting = Waiting::new();
        let found = py.detach(|| {
            loop {
                match look()? {
                    Look::Here(found) => return Ok(Some(found)),
                    Look::Wait(arrival) => {
                        if !arrival.wait_until(end) {
                            return Ok(None);
                        }
                    }
                }
            }
        });
        drop(waiting);
        let found: Option<T> = found.map_err(|error: PyErr| error)?;
        if found.is_some() {
            return Ok(found);
        }
        py.check_signals()?;
        if life::is_ending() {
            return Err(errors::closed());
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            return Ok(None);
        }
    }
}
