//! Warnings of contracts that a link will soon no longer carry.

use crate::form::Form;
use core::fmt;
use paceline_sched::Duration;

/// A forecast for a granted contract: the measured capacity of a link of its path falls, and will soon be too little.
///
/// The grant is still in force. If the capacity recovers, nothing follows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Warning {
    /// The time until then if the capacity falls on at the same rate, at most 10 s.
    pub after: Duration,
    /// The form of the step that an elastic contract is expected to take; `None` if the contract is expected to end.
    pub form: Option<Form>,
    /// The name of the node of the link, a label only.
    pub node_name: String,
    /// The name of the link.
    pub link: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in about {}: ", self.after)?;
        match self.form {
            Some(form) => write!(f, "{form}")?,
            None => f.write_str("no contract")?,
        }
        write!(f, ", because the capacity of link '{}' of '{}' falls", self.link, self.node_name)
    }
}
