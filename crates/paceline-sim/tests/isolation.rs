//! What one stream does is its own affair: others that were promised something lose nothing of it.
//!
//! `cargo test -p paceline-sim --test isolation -- --nocapture` prints the tables of docs/admission.md.

#[cfg(test)]
#[path = "isolation"]
mod isolation {
    mod chain;
    mod streams;
}
