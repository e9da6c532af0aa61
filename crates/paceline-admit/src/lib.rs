//! Admission control in pure arithmetic: admission tests of a link, its reservations, and the
//! reservation protocol along a path.
//!
//! The central value is [`Admission`], the reservations of one link. A demand is tested and reserved
//! in one call; a refusal reserves nothing and contains an offer:
//!
//! ```
//! use paceline_admit::{
//!     Admission, AdmissionResult, AdmissionTest, Holder, LinkParameters, StreamDemand, Traffic, Trunk,
//! };
//! use paceline_sched::{Capacity, Duration, Policy};
//!
//! let radio = Capacity::from_bits_per_s(1_000_000).unwrap();
//! let test = AdmissionTest::of(Policy::Vds).unwrap();
//! // Best effort sends packets of up to 1,500 bytes.
//! let mut link = Admission::new(LinkParameters::new(radio, test, 1_500));
//!
//! // Samples of 2,000 bytes at 20 Hz within 100 ms, in packets of at most 1,000 bytes.
//! let period = Duration::from_millis(50);
//! let camera = Traffic::periodic(2_000, period, Duration::ZERO, 1_000).unwrap();
//! let demand = StreamDemand::new(camera, Duration::from_millis(100)).unwrap();
//!
//! let (first, second) = (Holder { origin: 1, number: 0 }, Holder { origin: 1, number: 1 });
//! let AdmissionResult::Granted(grant) = link.hold(Trunk(1), first, &demand) else { panic!() };
//! assert!(grant.bound <= Duration::from_millis(100));
//! assert!(link.commit(Trunk(1), first, None));
//!
//! // 320 kbit/s are reserved; 800 kbit/s more do not fit.
//! let lidar = Traffic::periodic(5_000, period, Duration::ZERO, 1_000).unwrap();
//! let demand = StreamDemand::new(lidar, Duration::from_millis(100)).unwrap();
//! let AdmissionResult::Refused(refusal) = link.hold(Trunk(2), second, &demand) else { panic!() };
//! assert!(refusal.offer.rate.is_some());
//!
//! link.release(Trunk(1), first);
//! assert!(link.is_empty());
//! ```
//!
//! [`Reservations`] runs these tests hop by hop along a path, with messages in and out.
//!
//! Invariant: a grant stays valid whatever is admitted later, and after the release of all
//! reservations every sum is zero. All values are integers: bytes, nanoseconds and whole bits per
//! second, with 128 bits for intermediate results. Rounding never admits more than the exact value
//! would. Nothing here reads a clock or opens anything: traffic, capacities and instants are arguments.
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
mod regulated;
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
