//! Video: pictures that depend on others, and load shedding that respects these dependencies.
//!
//! A [`Kind::VideoI`] starts a new group. A [`Kind::VideoP`] depends on every I and P since and including the
//! last I. A [`Kind::VideoB`] depends on the same pictures, and no picture depends on it. A
//! [`Kind::VideoLeading`] depends on the group before its I too, and on other leading ones since that I.
//! Samples arrive in decoding order. A *group* is an I with the Ps and Bs up to the next I. The *tail* of a sample is the part
//! of its group that cannot be decoded without it.
//!
//! Shedding B before P before I: Krishnamurthy et al. 2003.

mod gate;
mod group;
mod structure;
mod thin;

pub use gate::DecodeGate;
pub use group::{Group, GroupBudget, Joining, Next};
pub(crate) use structure::THOUSAND;
pub use structure::{Structure, StructureMeter};
pub use thin::{Thinned, Thinner};

#[cfg(doc)]
use crate::sample::Kind;

#[cfg(test)]
#[path = "video/tests.rs"]
mod tests;
