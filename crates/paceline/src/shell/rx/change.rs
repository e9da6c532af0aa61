//! A change of the streams that arrive, from the engine.

use super::super::port::Port;
use paceline_node::arrive::Arrangement;
use paceline_node::install::Installation;

/// A change of an arriving stream.
pub(crate) struct RxChange {
    pub(crate) arrangement: Arrangement,
    /// Its outputs. Without any it is removed.
    pub(crate) installation: Installation<Port>,
}
