#![cfg(test)]
//! H.264 streams from an encoder and from recordings, complete and damaged, through the module's public
//! functions.
//!
//! Streams that no encoder produces on request are in the unit tests.

mod damage;
mod fidelity;
mod gstreamer;
mod made;
mod open;
mod quiet;
mod real;
mod support;
