//! The measured capacity of a link whose capacity nobody knows, such as a radio.
//!
//! [`CapacityEstimator`] is fed by the frames that a hop sends, and by their acknowledgements and losses. It returns a
//! [`CapacityEstimate`] and the probe bytes that it needs. It is pure: time is an argument.
//!
//! # Evidence
//!
//! - *An idle or half-used link is no evidence against its capacity.* A delivery rate that the application limited is only a
//!   lower bound (delivery rate estimation: Cheng et al., 2022; draft-ietf-ccwg-bbr, Cardwell et al., 2026). So the
//!   measurements are those of [trains](ProbeRequest) and of busy periods, and the window that contains them is counted in
//!   measurements, not in time.
//! - *A higher estimate needs evidence.* The rate of a train of frames is a lower bound of the capacity. Probe trains cost at
//!   most 5 % of the conservative end.
//! - *A fall is the growth of the queueing delay*, while less is delivered than sent (the delay gradient of Google Congestion
//!   Control: Carlucci et al., 2016; the queue delay of SCReAM: RFC 8298, Johansson and Sarker, 2017). One measurement of the
//!   rate then replaces all earlier ones. Much loss at nearly the full rate counts too, since a link may have a short queue.
//! - *An outage is silence* while data is outstanding. The estimate stays, since the capacity is unknown then.
//!
//! # Trust
//!
//! The peer sends the acknowledgements and their time stamps. Acknowledgements of frames that were not sent, and stamps that
//! contradict the time of the receipts by more than 2 s, are ignored. No measurement exceeds the rate at which the bytes of that
//! measurement were sent, and each one at most doubles the estimate, four times during the first ones. Memory is bounded by 4,096
//! frames.
//!
//! ```
//! use paceline_proto::capacity::{CapacityEstimator, CapacityState, Departure, Receipt};
//! use paceline_sched::{Duration, Instant};
//!
//! let mut estimator = CapacityEstimator::new(None, None);
//! let (mut number, mut now) = (0, Instant::from_millis(1));
//! for _ in 0..20 {
//!     // A train over a link of 8 Mbit/s, where 500 bytes take 0.5 ms.
//!     for index in 0..10 {
//!         let (left, backlogged) = (now + Duration::from_micros(index), index < 9);
//!         let sent = Departure { number: number + index, bytes: 500, left, backlogged, probe: true };
//!         estimator.handle_sent(now, &sent);
//!     }
//!     for index in 0..10 {
//!         now += Duration::from_micros(500);
//!         let newest = number + index;
//!         let receipt = Receipt { first: 0, newest, held: Duration::ZERO, arrived: None };
//!         estimator.handle_ack(now, &receipt);
//!     }
//!     number += 10;
//!     now += Duration::from_millis(100);
//! }
//! let found = estimator.estimate();
//! assert_eq!(found.state, CapacityState::Stable);
//! assert!((7_000_000..8_500_000).contains(&found.estimate), "{found:?}");
//! ```

mod admitted;
mod arrival;
mod estimator;
mod fall;
mod frames;
mod losses;
mod probing;
mod samples;
mod setting;
#[cfg(test)]
mod tests;
mod trains;
mod trend;

pub use admitted::AdmittedCapacity;
pub use estimator::CapacityEstimator;
pub use fall::CapacityFall;
pub(crate) use probing::TRAIN_LONGEST;
pub use setting::{LinkCapacity, LinkCapacityError};

use core::fmt;
use paceline_sched::{Duration, Instant};

/// A frame that a hop has sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Departure {
    /// The number of the frame. Numbers increase.
    pub number: u64,
    /// The bytes of the frame on the wire, headers included.
    pub bytes: u64,
    /// The time at which its last byte leaves this node.
    pub left: Instant,
    /// The sender's queue is not empty afterwards: the link limits the rate, not the application.
    pub backlogged: bool,
    /// The frame is a part of a requested train of probes.
    pub probe: bool,
}

/// An acknowledgement of consecutive frames. A selective acknowledgement is several of these, in ascending order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Receipt {
    /// The first frame. Frames that were acknowledged before may be repeated.
    pub first: u64,
    /// The last frame.
    pub newest: u64,
    /// The time for which the receiver delayed the acknowledgement after the arrival of the last frame.
    pub held: Duration,
    /// The arrival of the last frame by the receiver's clock, in microseconds, modulo 2³². The clock need not be synchronized.
    /// With it, the jitter of acknowledgements does not matter.
    pub arrived: Option<u32>,
}

/// The knowledge about the capacity of a link.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CapacityState {
    /// Nothing has been measured.
    #[default]
    Unknown,
    /// The measurements are few, or differ.
    Measuring,
    /// The last measurements agree.
    Stable,
    /// The capacity has fallen, and a queue stands in front of the bottleneck.
    Falling,
    /// Data is outstanding, and no acknowledgement arrives.
    Outage,
}

impl CapacityState {
    /// Every state.
    pub const ALL: [Self; 5] =
        [Self::Unknown, Self::Measuring, Self::Stable, Self::Falling, Self::Outage];

    /// Returns the name for people and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Measuring => "measuring",
            Self::Stable => "stable",
            Self::Falling => "falling",
            Self::Outage => "outage",
        }
    }
}

impl fmt::Display for CapacityState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The measured capacity of a link in bits per second on the wire, headers included.
///
/// `low <= estimate <= high`, all within the configured range. The only exception is `low` while the state is
/// [`CapacityState::Unknown`] or [`CapacityState::Outage`]: it is 0 unless a minimum is configured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CapacityEstimate {
    /// The most probable capacity. During an outage, that before it.
    pub estimate: u64,
    /// The conservative end of the confidence interval, for admission.
    pub low: u64,
    /// The optimistic end; the configured maximum, or `u64::MAX`, if nothing bounds the capacity.
    pub high: u64,
    /// The rate at which data without a contract may fill the link, contracts included: at most `low`, less while a queue
    /// drains, and 0 during an outage.
    pub pace: u64,
    /// The kind of knowledge.
    pub state: CapacityState,
}

/// A train of probe frames that the estimator requests.
///
/// The frames should leave together, at background priority: never before a sample with a contract. A train that has not begun
/// in time is requested again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ProbeRequest {
    /// The bytes of the train on the wire, headers included. Data that waits anyway may replace them. At least four frames
    /// make the measurement reliable.
    pub bytes: u64,
    /// The request expires at this time.
    pub until: Instant,
}

/// Returns the rate of `bytes` in `nanos` nanoseconds, in bits per second.
fn rate(bytes: u64, nanos: u64) -> u64 {
    let bits = u128::from(bytes) * 8_000_000_000;
    u64::try_from(bits / u128::from(nanos.max(1))).unwrap_or(u64::MAX)
}

/// Returns the time of `bytes` at `rate` bits per second, in nanoseconds.
fn time_of(bytes: u64, rate: u64) -> u64 {
    let nanos = u128::from(bytes) * 8_000_000_000 / u128::from(rate.max(1));
    u64::try_from(nanos).unwrap_or(u64::MAX)
}
