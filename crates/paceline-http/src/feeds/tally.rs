//! The counters of a player's track, and their sums over the players of a feed.

use paceline::status::PlayersStatus;
use paceline_edge::Reception;
use std::time::Duration;

/// The pictures and blocks that a player did not get.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct LeftOut {
    /// Pictures that waited too long.
    pub(crate) slow: u64,
    /// Pictures that need one that was left out.
    pub(crate) needs: u64,
    /// Blocks of sound that waited too long.
    pub(crate) sound: u64,
}

impl LeftOut {
    pub(crate) const fn total(self) -> u64 {
        self.slow + self.needs + self.sound
    }

    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            slow: self.slow + other.slow,
            needs: self.needs + other.needs,
            sound: self.sound + other.sound,
        }
    }

    const fn since(self, before: Self) -> Self {
        Self {
            slow: self.slow.saturating_sub(before.slow),
            needs: self.needs.saturating_sub(before.needs),
            sound: self.sound.saturating_sub(before.sound),
        }
    }
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            (self.slow, "pictures that the player read too slowly"),
            (self.needs, "pictures that need one of these"),
            (self.sound, "blocks of sound that it read too slowly"),
        ];
        let mut before = "";
        for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "{before}{count} {what}")?;
            before = ", ";
        }
        Ok(())
    }
}

/// The last report of a player about a track.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Heard {
    /// The part of the packets since the report before that was lost, 0 to 1.
    pub(crate) loss: f64,
    pub(crate) jitter: Duration,
    pub(crate) round_trip: Option<Duration>,
    /// The packets that were lost so far.
    pub(crate) lost: u64,
}

/// The counters of a track of one player.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TrackTally {
    /// The sequence number of the first packet.
    first: u16,
    rate: u32,
    pub(crate) packets: u64,
    pub(crate) left_out: LeftOut,
    /// The packets up to the highest sequence number that was reported.
    reported: u64,
    /// The highest sequence number of the report before, without its wraps.
    highest: Option<u16>,
    pub(crate) heard: Option<Heard>,
}

impl TrackTally {
    /// Returns the counters of a track whose packets begin with a sequence number, at a clock rate in Hz.
    pub(crate) fn new(first: u16, rate: u32) -> Self {
        Self { first, rate, ..Self::default() }
    }

    /// Takes a report that arrived at `nanos` since 1970 UTC. It cannot claim more packets than were sent.
    pub(crate) fn hear(&mut self, report: &Reception, nanos: u64) {
        let [_, _, a, b] = report.highest.to_be_bytes();
        let highest = u16::from_be_bytes([a, b]);
        let before = self.highest.unwrap_or_else(|| self.first.wrapping_sub(1));
        // The number of wraps counts from the first packet that the player got, so only differences are used. Reports are more
        // frequent than wraps, and a backward step is an old report.
        let step = highest.wrapping_sub(before);
        if step < 1 << 15 {
            self.reported = (self.reported + u64::from(step)).min(self.packets);
            self.highest = Some(highest);
        }
        self.heard = Some(Heard {
            loss: f64::from(report.lost_of_256) / 256.0,
            jitter: report.jitter_time(self.rate),
            round_trip: report.round_trip(nanos),
            lost: u64::try_from(report.lost).unwrap_or_default().min(self.reported),
        });
    }

    fn lost(&self) -> u64 {
        self.heard.map_or(0, |heard| heard.lost)
    }
}

/// Adds the counters of a track to the sum of a feed. `since` has its counters at the moment when the player joined.
pub(crate) fn add_counts(sum: &mut PlayersStatus, tally: &TrackTally, since: &TrackTally) {
    let left_out = tally.left_out.since(since.left_out);
    sum.packets += tally.packets.saturating_sub(since.packets);
    sum.left_out_slow += left_out.slow;
    sum.left_out_needs += left_out.needs;
    sum.left_out_sound += left_out.sound;
    sum.reported += tally.reported.saturating_sub(since.reported);
    sum.lost += tally.lost().saturating_sub(since.lost());
}

/// Adds a present player to the sum of a feed.
pub(crate) fn add_present(sum: &mut PlayersStatus, tally: &TrackTally) {
    sum.players += 1;
    let Some(heard) = &tally.heard else { return };
    sum.loss_max = sum.loss_max.max(heard.loss);
    sum.jitter_max = sum.jitter_max.max(heard.jitter);
    sum.round_trip_max = sum.round_trip_max.max(heard.round_trip);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(highest: u32, lost: i32) -> Reception {
        Reception {
            ssrc: 1,
            lost_of_256: 64,
            lost,
            highest,
            jitter: 180,
            last_report: 0,
            since_report: 0,
        }
    }

    #[test]
    fn reports_count_over_wraps_and_claim_no_more_than_was_sent() {
        let mut tally = TrackTally::new(65_000, 90_000);
        tally.packets = 40_000;
        tally.hear(&report(65_099, 2), 0);
        assert_eq!((tally.reported, tally.lost()), (100, 2));
        // The player counts wraps from its own first packet.
        tally.hear(&report(1 << 16 | 463, 7), 0);
        assert_eq!((tally.reported, tally.lost()), (1_000, 7));
        tally.hear(&report(463, -3), 0);
        assert_eq!((tally.reported, tally.lost()), (1_000, 0), "twice, and duplicates");
        tally.hear(&report(100, 9), 0);
        assert_eq!(tally.reported, 1_000, "an old report");
        for step in 1..9 {
            tally.hear(&report(step * 20_000, i32::MAX), 0);
        }
        assert_eq!((tally.reported, tally.lost()), (40_000, 40_000), "invented");
        assert_eq!(tally.heard.unwrap().loss.to_bits(), 0.25_f64.to_bits());
        assert_eq!(tally.heard.unwrap().jitter, Duration::from_millis(2));
    }

    #[test]
    fn sums_contain_the_time_of_each_player_in_the_feed() {
        let mut tally = TrackTally::new(0, 90_000);
        (tally.packets, tally.left_out.slow) = (50, 3);
        let since = tally;
        (tally.packets, tally.left_out.slow, tally.left_out.needs) = (150, 4, 9);
        tally.hear(&report(99, 5), 0);
        let mut sum = PlayersStatus::default();
        add_counts(&mut sum, &tally, &since);
        add_present(&mut sum, &tally);
        let wanted = PlayersStatus {
            players: 1,
            packets: 100,
            left_out_slow: 1,
            left_out_needs: 9,
            reported: 100,
            lost: 5,
            loss_max: 0.25,
            jitter_max: Duration::from_millis(2),
            ..PlayersStatus::default()
        };
        assert_eq!(sum, wanted);
    }
}
