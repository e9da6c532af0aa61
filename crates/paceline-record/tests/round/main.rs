//! Samples into a file and out of it again; files that are cut, broken, or of others.
#![cfg(test)]

mod cut;
mod judged;
mod support;
mod trip;
