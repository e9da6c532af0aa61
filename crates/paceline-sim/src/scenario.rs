//! A network, its load and its bad days, described in one file.
//!
//! [`Plan::read`] reads the file (docs/scenarios.md) and says everything that is wrong with it.
//! [`run`] runs it in virtual time: the same seed gives the same [`Record`]. [`Summary::of`] makes of a
//! record what people and programs read; live nodes make a record of the same kind, so that both
//! worlds can be compared row by row. [`oracles`] says what must hold of any record.

mod check;
mod file;
mod oracle;
mod plan;
mod problems;
mod record;
mod run;
mod summary;
mod values;

pub use oracle::oracles;
pub use plan::{
    COOL_DOWN, Content, Fault, FaultKind, NodePlan, Plan, Protocol, PublisherPlan, Span,
    SubscriberPlan, Wiring,
};
pub use problems::Problems;
pub use record::{Arrival, Carried, Published, Received, Record, Streamed};
pub use run::run;
pub use summary::{Delays, FaultRow, Flow, LinkRow, StreamRow, Summary, Windows};
