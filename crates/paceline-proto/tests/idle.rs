//! Tests of idle hops in virtual time.

// One module, so that lints treat the helpers as test code.
#[cfg(test)]
#[path = "idle"]
mod idle {
    mod hops;
    mod strangers;
}
