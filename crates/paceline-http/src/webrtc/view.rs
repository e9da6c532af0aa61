//! The figures of a session, as its address shows them.

use serde::Serialize;

/// The figures of a session.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct SessionView {
    /// Its number, the last part of its address.
    pub(super) id: String,
    /// The address that was requested.
    pub(super) address: String,
    /// The answer of the path.
    pub(super) answer: String,
    /// The peer receives.
    pub(super) connected: bool,
    pub(super) seconds: u64,
    pub(super) packets: u64,
    pub(super) bytes_per_s: u64,
    /// The estimated rate that the path to the peer can carry.
    pub(super) estimate_bits_per_s: Option<u64>,
    pub(super) loss: Option<f32>,
    pub(super) round_trip_ms: Option<f64>,
    pub(super) packets_sent_again: u64,
    /// The requests of the peer for key pictures, and those that were answered from the cached pictures.
    pub(super) key_requests: u64,
    pub(super) key_answers: u64,
    /// The pictures that were left out, by reason.
    pub(super) left_out_slow: u64,
    pub(super) left_out_needs: u64,
    pub(super) left_out_sound: u64,
    pub(super) left_out_reordered: u64,
    pub(super) left_out_large: u64,
    /// The samples of a publisher, and its pictures and blocks that were left out.
    pub(super) samples: u64,
    pub(super) losses: String,
}
