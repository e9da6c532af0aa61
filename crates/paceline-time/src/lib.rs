//! Time with an error bound, and the release of samples by time.
//!
//! The central value is [`TimeBounds`], an instant of UTC as an interval that contains it. Two instants have an order
//! only if their intervals do not overlap:
//!
//! ```
//! use paceline_time::{TimeBounds, TimeOrder};
//!
//! let camera = TimeBounds::new(5_000_000_000, 1_000); // 5 s, at most 1 µs wrong
//! let lidar = TimeBounds::new(5_000_200_000, 500_000); // 5.0002 s, at most 500 µs wrong
//! assert_eq!(camera.order(lidar), TimeOrder::Unknown);
//! assert_eq!(camera.order(TimeBounds::new(5_002_000_000, 500_000)), TimeOrder::Before);
//! ```
//!
//! [`ClockService`] obtains such readings from NTP servers. [`TimeBuffer`](order::TimeBuffer) releases samples of
//! several publishers in the order of their times:
//!
//! ```
//! use paceline_sched::{Duration, Instant};
//! use paceline_time::TimeBounds;
//! use paceline_time::order::{BufferLimits, LateArrival, TimeBuffer, Timed};
//!
//! let limits = BufferLimits::holding(Duration::from_millis(50));
//! let mut buffer = TimeBuffer::new(limits, LateArrival::Drop).unwrap();
//! for (arrived_ms, publisher, captured_ms) in [(1_000, 1, 900), (1_010, 2, 880)] {
//!     let nanos = captured_ms * 1_000_000;
//!     let bounds = TimeBounds::new(nanos, 1_000);
//!     let source = Some(publisher);
//!     let sample = Timed { clock: 0, source, nanos, bounds, bytes: 100, item: captured_ms };
//!     buffer.handle(Instant::from_millis(arrived_ms), sample);
//! }
//! let mut released = Vec::new();
//! while let Some(at) = buffer.next_release() {
//!     while let Some((captured_ms, _)) = buffer.poll(at) {
//!         released.push(captured_ms);
//!     }
//! }
//! assert_eq!(released, [880, 900]);
//! ```
//!
//! Invariant: the clock never runs backward, and its interval contains UTC as long as the servers' bounds are true.
//! Nothing here reads a clock or opens anything: the current time is an argument.
//!
//! * [`bounds`]: an instant of UTC as an interval that contains it.
//! * [`ntp`]: NTPv4 (RFC 5905): packets, the filter and the selection of servers, and the client's state of one.
//! * [`clock`]: a clock of UTC that follows those measurements and never runs backward.
//! * [`server`]: answers to NTP clients.
//! * [`fresh`]: commands that are never released too old.
//! * [`order`]: samples in the order of their times.
//! * [`spacing`]: samples with the spacing of their time stamps.
//! * [`playout`]: the streams of a group at the same instant.

pub mod bounds;
pub mod clock;
pub mod fresh;
pub mod ntp;
pub mod order;
pub mod playout;
pub mod server;
pub mod spacing;

pub use bounds::{TimeBounds, TimeOrder};
pub use clock::page::{ClockReading, ClockStatus};
pub use clock::service::ClockService;
pub use clock::shared::SharedClock;
