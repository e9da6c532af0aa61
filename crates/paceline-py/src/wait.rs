//! Waiting: without the interpreter's lock, and in slices, so that Ctrl-C ends it.

use crate::errors;
use crate::life::{self, Waiting};
use paceline::Arrival;
use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// How long one look lasts before signals are looked at. Python's handler of Ctrl-C runs only in its main thread, and
/// only when that comes back to it.
const SLICE: Duration = Duration::from_millis(50);
/// The longest time that can be waited: more than any clock counts is the same as no end.
const TIMEOUT_MAX_S: f64 = 1e9;

/// What is found when one looks.
pub(crate) enum Look<T> {
    /// It is there.
    Here(T),
    /// Not yet: this tells when to look again.
    Wait(Arrival),
}

/// A time from now on, in seconds; none is no end.
pub(crate) fn end_of(timeout_s: Option<f64>) -> PyResult<Option<Instant>> {
    let Some(seconds) = timeout_s else { return Ok(None) };
    if seconds.is_nan() || seconds < 0.0 {
        return Err(errors::value(format!(
            "timeout_s={seconds}: it must be 0 or more; None waits without end"
        )));
    }
    Ok((seconds < TIMEOUT_MAX_S).then(|| Instant::now() + Duration::from_secs_f64(seconds)))
}

/// Looks until something is there; none when `until` came first.
pub(crate) fn until<T: Send>(
    py: Python<'_>,
    until: Option<Instant>,
    mut look: impl FnMut() -> PyResult<Look<T>> + Send,
) -> PyResult<Option<T>> {
    loop {
        let slice = Instant::now() + SLICE;
        let end = until.map_or(slice, |until| until.min(slice));
        // Until it is back.
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
