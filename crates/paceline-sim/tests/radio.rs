//! Steering next to an elastic camera over a radio whose capacity changes and is measured, in virtual time.

// A single module makes clippy treat the helpers as tests too.
#[cfg(test)]
#[path = "radio"]
mod radio {
    mod example;
    mod losses;
    mod stage;
    mod traces;
    mod warnings;
}
