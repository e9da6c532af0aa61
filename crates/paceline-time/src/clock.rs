//! A clock of UTC that never runs backward, with a bound on its error.
//!
//! * [`page`]: the map from the raw clock to UTC, and a reading of it.
//! * [`shared`]: a page that many threads read while one replaces it.
//! * [`servo`]: the frequency of the raw clock, and the offset, by linear regression.
//! * [`service`]: servers in, pages out.

pub mod page;
pub mod service;
pub mod servo;
pub mod shared;
