//! The usual ways to send objects, each with one value that is tuned.

mod accumulator;
mod exchange;
mod fixed;
mod reckoning;
mod table;

pub(super) use accumulator::{Accumulator, Priority};
pub(super) use exchange::{OurExchange, REFRESH};
pub(super) use fixed::FixedRate;
pub(super) use reckoning::DeadReckoning;
pub(super) use table::DistanceTable;
