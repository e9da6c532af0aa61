//! Round trips of samples through a file; truncated, corrupted and foreign files.
#![cfg(test)]

mod cut;
mod damaged;
mod field;
mod judged;
mod support;
mod trip;
