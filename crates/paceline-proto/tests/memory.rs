//! Tests of the memory of a node for its neighbours.

// One module, so that lints treat the helpers as test code.
#[cfg(test)]
#[path = "memory"]
mod memory {
    mod budget;
    mod sender;
}
