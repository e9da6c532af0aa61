//! The properties of a stream.

use crate::size::Size;

/// The highest plausible rate in Hz; higher ones are ignored.
const HZ_MAX: f64 = 1000.0;

/// The properties of a stream from its parameter sets or sequence header.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamInfo {
    /// The size of the displayed pictures, after cropping.
    pub size: Size,
    /// The pictures per second from the stream's timing information; `None` if it has none.
    ///
    /// The encoder declares this rate; it is not measured.
    pub hz: Option<f64>,
}

/// Returns `hz` if it is a plausible rate.
pub(crate) fn plausible_hz(hz: f64) -> Option<f64> {
    (hz.is_finite() && hz > 0.0 && hz <= HZ_MAX).then_some(hz)
}
