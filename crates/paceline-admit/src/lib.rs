//! Admission control in pure arithmetic: admission tests of a link, its reservations, and the
//! reservation protocol along a path.
//!
//! Nothing here reads a clock or opens anything: traffic, capacities and instants are arguments.
//! All values are integers: bytes, nanoseconds and whole bits per second, with 128 bits for
//! intermediate results. Rounding never admits more than the exact value would.
//!
//! * [`traffic`]: the arrival curve of a stream.
//! * [`bounds`]: bounds on delay, backlog and output of a server.
//! * [`demand`]: the demand of a stream on a link.
//! * [`link`]: the admission test of each discipline, and the reservations of a link.
//! * [`verdict`]: the answer: a grant with a bound, or a refusal with the exceeded limit and an
//!   offer.
//! * [`cpu`]: the processor time of samples.
//! * [`ledger`]: the sums of reservations.
//! * [`reserve`]: the reservation protocol among the nodes of a path.

pub mod bounds;
mod corners;
pub mod cpu;
pub mod demand;
mod due;
pub mod error;
pub mod ledger;
mod levels;
pub mod link;
mod owed;
pub mod reserve;
mod staircase;
pub mod traffic;
pub mod verdict;

pub use demand::StreamDemand;
pub use error::DemandError;
pub use link::{Admission, AdmissionTest, Holder, LinkParameters, QueueSpace, Trunk, TrunkRate};
pub use reserve::Reservations;
pub use traffic::Traffic;
pub use verdict::{AdmissionResult, LinkGrant, LinkOffer, LinkRefusal, Resource};
