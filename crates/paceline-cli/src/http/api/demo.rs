//! The answers of the demos.

use serde::Serialize;

/// The answer of `/api/v1/comparison`: the delays of a tag in each second.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Comparison {
    pub(crate) tag: &'static str,
    /// The second in which the flood starts.
    pub(crate) flood_s: usize,
    /// Mean delay in microseconds; 0 if no sample arrived.
    pub(crate) mean_us: Vec<u64>,
    /// Largest delay in microseconds.
    pub(crate) max_us: Vec<u64>,
}

/// The answer of `/api/v1/world`: the town and its observers.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct WorldState {
    pub(crate) side_m: f64,
    /// The capacity of the radio link.
    pub(crate) capacity: String,
    /// The true position of each car.
    pub(crate) cars: Vec<[f64; 2]>,
    pub(crate) observers: Vec<ObserverState>,
}

/// An observer and the cars as it sees them.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct ObserverState {
    pub(crate) name: &'static str,
    pub(crate) position: [f64; 2],
    pub(crate) reading: Reading,
    /// The number of a car, its seen position, its error in metres and its age in milliseconds.
    pub(crate) seen: Vec<(usize, [f64; 2], f64, u64)>,
}

/// The view of an observer in the last second.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Reading {
    pub(crate) name: &'static str,
    /// The number of cars that it knows.
    pub(crate) cars: usize,
    /// The greatest number of cars within 100 m.
    pub(crate) near: usize,
    /// The mean distance between the true and the seen position of near cars, in metres.
    pub(crate) near_error_m: f64,
    /// The same of all other known cars.
    pub(crate) far_error_m: f64,
    /// The greatest age of a near car.
    pub(crate) near_age_ms: u64,
    /// The traffic of its link from the town.
    pub(crate) bits_per_s: u64,
    pub(crate) contract: ContractState,
}

/// The state of an observer's contract.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename_all = "snake_case"))]
#[serde(rename_all = "snake_case")]
pub(crate) enum ContractState {
    None,
    Requested,
    Granted,
    Refused,
    Withdrawn,
}

impl ContractState {
    /// Returns its name as in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Requested => "requested",
            Self::Granted => "granted",
            Self::Refused => "refused",
            Self::Withdrawn => "withdrawn",
        }
    }
}
