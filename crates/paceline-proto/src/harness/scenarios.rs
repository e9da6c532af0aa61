//! Conformance: what subscribers get, asserted in counts, order and forms, never in wall time.
//!
//! Each scenario builds its own nodes on an empty [`Net`](super::Net) and panics if the network does
//! not do what it promises.
