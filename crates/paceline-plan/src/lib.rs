//! Placement of proxies: at which nodes streams are thinned and scaled, so that every subscriber's
//! delay bound holds and the network carries the fewest bits, or uses the least processor time.
//!
//! The problem and its exhaustive search are from K. Juvva: Coscheduling of Computation and
//! Communication Resources in Push-Pull Communications to provide End-to-End QoS guarantees,
//! CMU-CS-99-166, 1999, §2.4 and appendix A. [`printed`] has the paper's program, whose errors this
//! crate does not repeat.
//!
//! ```
//! use core::time::Duration as Budget;
//! use paceline_plan::{PlanLink, PlanNode, PlanProblem, PlanSubscriber, PlanTag, plan};
//! use paceline_sched::Duration;
//!
//! let mut problem = PlanProblem::new(["robot", "mast", "operator"].map(PlanNode::new).to_vec());
//! problem.links = vec![PlanLink::new(0, 1), PlanLink::new(1, 2)];
//! let mut tag = PlanTag::new("robot/camera", 0, Duration::from_millis(33), 20_000);
//! tag.subscribers.push(PlanSubscriber {
//!     node: 2,
//!     scale: 3,
//!     bytes: 5_000,
//!     within: Some(Duration::from_millis(150)),
//! });
//! problem.tags.push(tag);
//! let planned = plan(&problem, &mut || Budget::from_secs(1)).unwrap();
//! // 2 · 99 ms = 198 ms with the proxy at the robot are too much; 33 + 99 = 132 ms fit.
//! assert_eq!(planned.proxies[0].node, 1);
//! ```
//!
//! Nothing here reads a clock or opens anything: [`plan`] calls a function that returns the
//! remaining time.
//!
//! * [`problem`]: nodes, links, tags, objective, cost and delay models.
//! * [`plan`]: the planner. [`exhaustive`]: the reference. [`integer`]: the mixed-integer program.
//! * [`graphml`]: topologies from GraphML.
//! * [`printed`]: the paper's program and example, literal and corrected.

mod budget;
mod check;
mod delay;
pub mod error;
mod exhaustive;
mod facility;
pub mod graphml;
mod group;
mod integer;
mod limits;
mod list;
mod model;
pub mod printed;
pub mod problem;
mod program;
mod reason;
mod refuse;
mod routes;
mod search;
mod single;
mod solution;
mod solve;
mod usage;

pub use budget::Remaining;
pub use error::{Binding, PlanError};
pub use exhaustive::exhaustive;
pub use integer::integer;
pub use problem::{
    CostModel, DelayModel, Objective, PlanLink, PlanNode, PlanProblem, PlanSubscriber, PlanTag,
    SampleCpu,
};
pub use solution::{PlanState, Planned, PlannedProxy, PlannedStream, cost_of};
pub use solve::plan;
