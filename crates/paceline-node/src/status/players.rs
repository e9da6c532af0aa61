//! The players behind a subscription of an RTSP server.

use super::units::{maybe_micros, micros, part};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The players of an RTSP server that share a subscription, and their reception.
///
/// Counters cover all players since the subscription began. Receiver reports (RFC 3550, 6.4.2) are statements of the players: at
/// most as many packets as were sent count as reported, and at most these as lost.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Players"))]
pub struct PlayersStatus {
    /// Players that receive the samples now.
    pub players: u64,
    /// RTP packets that were sent.
    pub packets: u64,
    /// Pictures that were left out because the player read too slowly.
    pub left_out_slow: u64,
    /// Pictures that were left out because they need an earlier one that was.
    pub left_out_needs: u64,
    /// Blocks of sound that were left out because the player read too slowly.
    pub left_out_sound: u64,
    /// Packets up to the highest sequence number that each player reported.
    pub reported: u64,
    /// The part of `reported` that did not arrive, as the players reported it.
    pub lost: u64,
    /// The largest lost part of the packets between the last two reports of a present player, 0 to 1.
    #[serde(with = "part")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub loss_max: f64,
    /// The largest jitter in the last report of a present player.
    #[serde(rename = "jitter_max_us", with = "micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub jitter_max: Duration,
    /// The largest round trip of a present player, from its last report; null if no player states when it received a sender report.
    #[serde(rename = "round_trip_max_us", with = "maybe_micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number | null"))]
    pub round_trip_max: Option<Duration>,
}

impl PlayersStatus {
    /// Returns the counts of pictures and blocks that were left out, by reason.
    #[must_use]
    pub const fn left_out(&self) -> [(&'static str, u64); 3] {
        [
            ("slow", self.left_out_slow),
            ("needs", self.left_out_needs),
            ("sound", self.left_out_sound),
        ]
    }
}
