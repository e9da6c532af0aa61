//! The clock of a node.

use crate::errors;
use crate::life::{self, Waiting};
use crate::wait::{self, SLICE};
use paceline::time::{Clock as Inner, ClockReading};
use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// A reading of a clock: the time, and the interval that contains the true time.
#[pyclass(frozen, get_all, module = "paceline")]
pub(crate) struct Reading {
    /// The time in nanoseconds since 1970 UTC.
    ns: u64,
    /// The earliest possible true time, in nanoseconds since 1970 UTC.
    earliest_ns: u64,
    /// The latest possible true time, in nanoseconds since 1970 UTC.
    latest_ns: u64,
    /// The bound of the error in microseconds; `None` if it is unknown.
    error_us: Option<f64>,
    /// `unsynchronised`, `synchronised`, `holdover` or `disrupted`.
    status: String,
}

impl Reading {
    fn new(reading: &ClockReading) -> Self {
        let error = Some(reading.error()).filter(|error| *error != u64::MAX);
        Self {
            ns: reading.nanos,
            earliest_ns: reading.bounds.earliest,
            latest_ns: reading.bounds.latest,
            error_us: error.map(|nanos| Duration::from_nanos(nanos).as_secs_f64() * 1e6),
            status: reading.status.to_string(),
        }
    }
}

#[pymethods]
impl Reading {
    /// Returns true if this time is before `other` for every possible error.
    const fn definitely_before(&self, other: &Self) -> bool {
        self.latest_ns < other.earliest_ns
    }

    fn __repr__(&self) -> String {
        let error = self.error_us.map_or_else(|| "unknown".to_owned(), |us| format!("{us:.3} us"));
        format!("Reading(ns={}, error={error}, {})", self.ns, self.status)
    }
}

/// The clock of a node; it remains valid after the node is closed, and then holds its last state.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Clock(pub(crate) Inner);

#[pymethods]
impl Clock {
    /// Returns the present time, its bounds and the state of the clock.
    fn now(&self) -> Reading {
        Reading::new(&self.0.now())
    }

    /// Returns the present time; it is later than all earlier stamps of the node.
    fn stamp(&self) -> Reading {
        Reading::new(&self.0.stamp())
    }

    /// The state: `unsynchronised`, `synchronised`, `holdover` or `disrupted`.
    #[getter]
    fn status(&self) -> String {
        self.0.status().to_string()
    }

    /// Blocks until a time has passed with certainty. Returns false after `timeout_s`.
    fn wait_until_past(&self, py: Python<'_>, ns: u64, timeout_s: f64) -> PyResult<bool> {
        let until = wait::end_of(Some(timeout_s))?;
        loop {
            let left = |until: Instant| until.saturating_duration_since(Instant::now()).min(SLICE);
            let left = until.map_or(SLICE, left);
            let waiting = Waiting::new();
            let past = py.detach(|| self.0.wait_until_past(ns, left));
            drop(waiting);
            if past || until.is_some_and(|until| Instant::now() >= until) {
                return Ok(past);
            }
            py.check_signals()?;
            if life::is_ending() {
                return Err(errors::closed());
            }
        }
    }

    fn __repr__(&self) -> String {
        format!("Clock({})", self.0.status())
    }
}
