//! A hostile participant of a world next to honest ones, in virtual time.

#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test may panic")]

mod clocks;
mod expressions;
mod forged;
mod model;
mod net;
mod ownership;
mod quotas;
