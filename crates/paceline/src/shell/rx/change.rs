//! A change of the streams that arrive, from the engine.

use super::super::installation::Installation;
use paceline_node::arrive::Arrangement;

/// A change of an arriving stream.
pub(crate) struct RxChange {
    pub(crate) arrangement: Arrangement,
    /// Its outputs; `None` if it has none any more.
    pub(crate) installation: Option<Installation>,
}
