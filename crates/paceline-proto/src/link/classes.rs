//! The streams of a link in its classes, and the policers of the classes.

mod gate;
mod streams;

pub(super) use gate::Gate;
pub use streams::ClassView;
pub(super) use streams::{ClassStreams, Home, discipline};
