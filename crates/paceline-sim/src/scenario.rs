//! Scenarios: a network, its load and its faults, described in one file.
//!
//! [`Plan::read`] parses the file (docs/reference/scenarios.md) and reports all errors in it. [`run`] runs it in
//! virtual time: the same seed gives the same [`Record`]. [`Summary::of`] summarises a record for people and
//! programs. Live nodes produce a record of the same type, so that simulated and live runs can be compared
//! row by row. [`oracles`] checks the invariants of any record.

mod check;
mod course;
mod file;
mod oracle;
mod plan;
mod problems;
mod record;
mod run;
mod summary;
mod values;

pub use course::CapacityCourse;
pub use oracle::oracles;
pub use plan::{
    COOL_DOWN, Content, Fault, FaultKind, Lifetime, NodePlan, Plan, Protocol, PublisherPlan,
    SubscriberPlan, Wiring,
};
pub use problems::Problems;
pub use record::{Carried, Published, ReceivedSample, Record, Steps, Streamed, SubscriberRecord};
pub use run::run;
pub use summary::{DelayQuantiles, FaultRow, Flow, LinkRow, StreamRow, Summary, Windows};
