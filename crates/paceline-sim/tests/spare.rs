//! Contracts with a spare in virtual time.

// One module, so that lints treat the helpers as test code.
#[cfg(test)]
#[path = "spare"]
mod spare {
    mod takeover;
}
