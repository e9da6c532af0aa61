//! Admission in pure arithmetic: what a link can promise, what it has promised, and how a promise is made
//! along a path.
//!
//! Nothing here reads a clock or opens anything: traffic, capacities and instants are arguments, answers
//! are values. Integers only: bytes, nanoseconds, whole bits per second, 128 bits in between. What is
//! rounded is rounded so that less is promised, never more.
//!
//! * [`traffic`]: what a stream sends at most.
//! * [`bounds`]: how long it waits behind a server, how much of it waits, what leaves.
//! * [`demand`]: what a stream asks of a link.
//! * [`link`]: the admission test of each discipline, and what a link holds.
//! * [`verdict`]: the answer: granted with a bound, or refused with the number and an offer.
//! * [`cpu`]: what samples cost the host.
//! * [`ledger`]: the sums.
//! * [`reserve`]: how the nodes of a path promise together.

pub mod bounds;
mod corners;
pub mod cpu;
pub mod demand;
pub mod error;
pub mod ledger;
mod levels;
pub mod link;
mod owed;
pub mod reserve;
pub mod traffic;
pub mod verdict;

pub use demand::Demand;
pub use error::DemandError;
pub use link::{Admission, Holder, LinkSpec, Rule, Trunk};
pub use reserve::Reservations;
pub use traffic::Traffic;
pub use verdict::{Grant, Offer, Refusal, Resource, Verdict};
