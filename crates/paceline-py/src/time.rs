//! Durations in the units of Python.

use std::time::Duration;

pub(crate) fn to_ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
