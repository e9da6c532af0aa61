#![cfg(test)]
//! H.264 streams from an encoder and from recordings, whole and damaged, through the module's
//! public functions. What no encoder makes on request is in the unit tests.

mod damage;
mod made;
mod quiet;
mod real;
mod support;
