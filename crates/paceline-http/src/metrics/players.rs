//! The metrics of the players of an RTSP server.

use super::{Families, Kind, Labels, seconds};
use paceline::status::PlayersStatus;

/// Adds the players that share a subscription.
pub(super) fn write(to: &mut Families, at: &Labels, row: &PlayersStatus) {
    let help = "Players of an RTSP server that receive the samples of the subscription.";
    to.gauge("paceline_players", help, at, row.players);
    to.count("paceline_players_packets_total", "RTP packets sent to players.", at, row.packets);
    for (reason, count) in row.left_out() {
        let mut at = at.clone();
        at.push(("reason", reason.to_owned()));
        let help = "Pictures and blocks of sound that players did not get: slow, needs (one that was left out), sound.";
        to.count("paceline_players_left_out_total", help, &at, count);
    }
    let help = "Packets about which players have sent receiver reports.";
    to.count("paceline_players_reported_packets_total", help, at, row.reported);
    let help = "The part of the reported packets that players did not receive.";
    to.count("paceline_players_lost_packets_total", help, at, row.lost);
    let name = "paceline_players_loss_max_ratio";
    let help = "Largest lost part between the last two reports of a player.";
    to.add(Kind::Gauge, name, help, at, &row.loss_max.to_string());
    let (name, help) = ("paceline_players_jitter_max_seconds", "Largest jitter of a player.");
    to.add(Kind::Gauge, name, help, at, &seconds(row.jitter_max));
    if let Some(trip) = row.round_trip_max {
        let name = "paceline_players_round_trip_max_seconds";
        let help = "Largest round trip of a player; missing if none is known.";
        to.add(Kind::Gauge, name, help, at, &seconds(trip));
    }
}
