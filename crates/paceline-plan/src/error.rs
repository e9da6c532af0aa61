//! The errors of the planner. Each names the item, its value, the allowed range and a fix.

use paceline_sched::Duration;
use std::error::Error;
use std::fmt;

/// The constraint that makes a problem infeasible.
#[derive(Clone, Debug, PartialEq)]
pub enum Binding {
    /// The subscriber's own delay bound.
    Delay,
    /// The number of proxies of the tag: no node or set of nodes is fast enough for all subscribers.
    Proxies(usize),
    /// The capacity of a link.
    Link {
        /// The name of the sending node.
        from: String,
        /// The name of the receiving node.
        to: String,
        /// The capacity in bits per second.
        capacity: u64,
    },
    /// The processor time of a node.
    Cpu {
        /// The name of the node.
        node: String,
        /// The limit in seconds per second.
        limit: f64,
    },
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delay => f.write_str("its delay bound"),
            Self::Proxies(1) => f.write_str("the limit of 1 proxy per tag"),
            Self::Proxies(most) => write!(f, "the limit of {most} proxies per tag"),
            Self::Link { from, to, capacity } => {
                write!(f, "the capacity of the link {from} → {to}, {capacity} bit/s")
            }
            Self::Cpu { node, limit } => {
                write!(f, "the processor time of node {node}, {limit} s per second")
            }
        }
    }
}

/// The reasons for which there is no plan.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PlanError {
    /// A value of the problem is out of range. The text names it, the range and a fix.
    Value(String),
    /// A topology in GraphML is invalid. The text names the element and a fix.
    GraphMl(String),
    /// No path leads from a publisher to a subscriber.
    Disconnected {
        /// The tag.
        tag: String,
        /// The name of the publisher's node.
        publisher: String,
        /// The name of the subscriber's node.
        subscriber: String,
    },
    /// No place meets the constraints of a subscriber.
    Infeasible {
        /// The tag.
        tag: String,
        /// The name of the subscriber's node.
        subscriber: String,
        /// The requested delay bound, if there is one.
        within: Option<Duration>,
        /// The smallest delay bound with which there is a plan, if all other values stay. `None` if
        /// no delay bound helps.
        smallest: Option<Duration>,
        /// The constraint that excludes a smaller delay.
        binding: Box<Binding>,
    },
    /// No plan was found in time, and it was not proved that there is none.
    Unknown,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(text) | Self::GraphMl(text) => f.write_str(text),
            Self::Disconnected { tag, publisher, subscriber } => write!(
                f,
                "{tag}: no path of links leads from the publisher {publisher} to the subscriber \
                 {subscriber}: add a link, or remove the subscriber"
            ),
            Self::Infeasible { tag, subscriber, within, smallest, binding } => {
                write!(f, "{tag}: infeasible for the subscriber {subscriber}")?;
                if let Some(within) = within {
                    write!(f, " within {within}")?;
                }
                write!(f, ": the binding constraint is {binding}")?;
                match smallest {
                    Some(smallest) => write!(f, "; the smallest feasible delay is {smallest}"),
                    None => f.write_str("; no delay bound helps, so raise this limit"),
                }
            }
            Self::Unknown => f.write_str(
                "no plan was found in time, and none is proved impossible: allow more time, or \
                 raise the limits of links and nodes",
            ),
        }
    }
}

impl Error for PlanError {}
