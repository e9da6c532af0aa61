//! Errors of joining a world.

use crate::{PublishError, SubscribeError};
use paceline_objects::interest::InterestError;
use paceline_objects::participant::SettingsError;
use paceline_objects::run_queue::WorkersError;
use std::io;
use thiserror::Error;

/// The error of [`WorldBuilder::join`](super::WorldBuilder::join) and of changes of an interest.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WorldError {
    /// The name of the world.
    #[error("world {0:?}: must have 1 to 100 bytes without * and /@, such as town")]
    Name(String),
    /// A setting that is out of range.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// An interest that is out of range.
    #[error(transparent)]
    Interest(#[from] InterestError),
    /// A number of workers that is out of range.
    #[error(transparent)]
    Workers(#[from] WorkersError),
    /// A publisher of the world could not be declared.
    #[error("world: {0}")]
    Publish(#[from] PublishError),
    /// A subscription of the world could not be declared.
    #[error("world: {0}")]
    Subscribe(#[from] SubscribeError),
    /// No thread could be started.
    #[error("world: no thread: {0}; raise the limit of threads")]
    Thread(#[from] io::Error),
}
