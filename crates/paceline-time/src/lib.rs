//! Time with an error bound.
//!
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
