//! The answers of the demos.

use serde::Serialize;

/// The answer of `/api/v1/comparison`: the delays of a tag in each second.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Comparison {
    /// Tag of the compared stream.
    pub tag: &'static str,
    /// The second in which the flood starts.
    pub flood_s: usize,
    /// Mean delay in microseconds; 0 if no sample arrived.
    pub mean_us: Vec<u64>,
    /// Largest delay in microseconds.
    pub max_us: Vec<u64>,
}

/// The answer of `/api/v1/world`: the town and its observers.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct WorldState {
    /// Length of a side of the town in metres.
    pub side_m: f64,
    /// The capacity of the radio link.
    pub capacity: String,
    /// The true position of each car.
    pub cars: Vec<[f64; 2]>,
    /// The observers, in a fixed order.
    pub observers: Vec<ObserverState>,
}

/// An observer and the cars as it sees them.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ObserverState {
    /// Display name.
    pub name: &'static str,
    /// Position in metres.
    pub position: [f64; 2],
    /// Measured over the last second.
    pub reading: WorldReading,
    /// The number of a car, its seen position, its error in metres and its age in milliseconds.
    pub seen: Vec<(usize, [f64; 2], f64, u64)>,
}

/// The view of an observer in the last second.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Reading"))]
pub struct WorldReading {
    /// Display name of the observer.
    pub name: &'static str,
    /// The number of cars that it knows.
    pub cars: usize,
    /// The greatest number of cars within 100 m.
    pub near: usize,
    /// The mean distance between the true and the seen position of near cars, in metres.
    pub near_error_m: f64,
    /// The same of all other known cars.
    pub far_error_m: f64,
    /// The greatest age of a near car.
    pub near_age_ms: u64,
    /// The traffic of its link from the town.
    pub bits_per_s: u64,
    /// State of the contract with the town.
    pub contract: ContractState,
}

/// The state of an observer's contract.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename_all = "snake_case"))]
#[serde(rename_all = "snake_case")]
pub enum ContractState {
    /// No contract is requested.
    None,
    /// The path has not answered.
    Requested,
    /// The contract is in force.
    Granted,
    /// The path refused the contract.
    Refused,
    /// The path withdrew the contract.
    Withdrawn,
}

impl ContractState {
    /// Returns its name as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Requested => "requested",
            Self::Granted => "granted",
            Self::Refused => "refused",
            Self::Withdrawn => "withdrawn",
        }
    }
}
