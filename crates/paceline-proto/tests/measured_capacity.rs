//! The estimator fed by two real links over a simulated bottleneck: the acknowledgements of hops suffice, and trains can
//! consist of data that waits anyway.

// One module, so that lints treat the helpers as test code.
#[cfg(test)]
#[path = "measured_capacity"]
mod measured_capacity {
    mod links;
}
