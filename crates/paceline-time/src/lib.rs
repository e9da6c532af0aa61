//! Time with an error bound.
//!
//! Nothing here reads a clock or opens anything: the current time is an argument.
//!
//! * [`bounds`]: an instant of UTC as an interval that contains it.
//! * [`fresh`]: commands that are never released too old.
//! * [`order`]: samples in the order of their times.
//! * [`spacing`]: samples with the spacing of their time stamps.

pub mod bounds;
pub mod fresh;
pub mod order;
pub mod spacing;

pub use bounds::{TimeBounds, TimeOrder};
