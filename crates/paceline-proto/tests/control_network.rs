//! Networks of `Control`s joined by queues, in virtual time.

#[path = "control_network/bounds.rs"]
mod bounds;
#[path = "control_network/convergence.rs"]
mod convergence;
#[path = "control_network/net.rs"]
mod net;
#[path = "control_network/oracle.rs"]
mod oracle;
#[path = "control_network/random.rs"]
mod random;
#[path = "control_network/refusals.rs"]
mod refusals;
#[path = "control_network/routes.rs"]
mod routes;
#[path = "control_network/status.rs"]
mod status;
