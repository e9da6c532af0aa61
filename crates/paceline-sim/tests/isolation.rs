//! Isolation: whatever one stream does, the contracts of other streams hold.
//!
//! `cargo test -p paceline-sim --test isolation -- --nocapture` prints the tables of docs/concepts/admission.md.

#[cfg(test)]
#[path = "isolation"]
mod isolation {
    mod chain;
    mod streams;
}
