//! Time with an error bound.
//!
//! Nothing here reads a clock or opens anything: the current time is an argument.
//!
//! * [`bounds`]: an instant of UTC as an interval that contains it.

pub mod bounds;

pub use bounds::{TimeBounds, TimeOrder};
