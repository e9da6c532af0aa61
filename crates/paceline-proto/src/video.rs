//! Video: pictures that need others to be decoded, and what may be left out of them.
//!
//! A [`Kind::VideoI`] begins anew. A [`Kind::VideoP`] needs every I and P since and including the last
//! I; a [`Kind::VideoB`] needs the same, and nothing needs it. Samples come in the order in which they
//! are decoded. An I with the Ps and Bs that follow it up to the next I is a *group*; its *tail* from a
//! sample on is all that is worthless without it.
//!
//! Paper: seed 004 (a coprocessor that sheds B before P before I).

mod gate;
mod thin;

pub use gate::DecodeGate;
pub use thin::{Thinned, Thinner};

#[cfg(doc)]
use crate::sample::Kind;

#[cfg(test)]
#[path = "video/tests.rs"]
mod tests;
