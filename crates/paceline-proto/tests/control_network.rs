//! Tests of networks of `Control` instances, joined by queues in virtual time.

// One module, so that lints treat the helpers as test code.
#[cfg(test)]
#[path = "control_network"]
mod control_network {
    mod answers;
    mod ask;
    mod bounds;
    mod change;
    mod classes;
    mod convergence;
    mod declarations;
    mod elastic;
    mod global;
    mod idle;
    mod leaves;
    mod medium;
    mod net;
    mod notified;
    mod oracle;
    mod processor;
    mod proxies;
    mod publisher_requests;
    mod questions;
    mod random;
    mod random_spares;
    mod refusals;
    mod reservations;
    mod rights;
    mod routes;
    mod spare;
    mod spare_paths;
    mod spare_surveys;
    mod truth;
    mod two_way;
    mod two_way_dry_run;
}
