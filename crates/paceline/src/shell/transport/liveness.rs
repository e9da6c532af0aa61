//! The liveness of a connection: when its end has nothing to send but must show that it is alive, and when the silence of
//! the other end means that the connection is dead.
//!
//! The probes of an idle hop are frames, so only a connection that carries none sends records of its own: one besides a
//! newer one to the same peer, for example. The interval is that of the hop's probes, so a slow link is not busy with
//! them, and both ends use the same one. An incoming connection gets none before its hop is up: greetings show that this
//! end is alive, and strangers cost no more than the share of those.

use super::OPEN_MAX;
use paceline_proto::ProbeInterval;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The times of the last data in both directions.
#[derive(Debug)]
pub(super) struct Liveness {
    begun: Instant,
    /// The interval of probes, in tenths of a second.
    tenths: AtomicU64,
    /// Nanoseconds since the begin; 0 before the first data.
    heard: AtomicU64,
    sent: AtomicU64,
    /// The hop was up since the connection began, or this end has connected.
    proven: AtomicBool,
}

impl Liveness {
    /// Returns the liveness of a new connection. `probes` is the interval of this end's link; `proven` is true if the other
    /// end need not prove itself before this end shows that it is alive.
    pub(super) fn new(probes: ProbeInterval, proven: bool) -> Self {
        let (heard, sent, proven) = (AtomicU64::new(0), AtomicU64::new(0), proven.into());
        let tenths = AtomicU64::new(probes.tenths());
        Self { begun: Instant::now(), tenths, heard, sent, proven }
    }

    /// Returns the begin of the connection.
    pub(super) const fn begun(&self) -> Instant {
        self.begun
    }

    /// Notes that the hop is up.
    pub(super) fn prove(&self) {
        self.proven.store(true, Ordering::Relaxed);
    }

    /// Returns true if the hop was up since the connection began, or this end has connected.
    pub(super) fn is_proven(&self) -> bool {
        self.proven.load(Ordering::Relaxed)
    }

    /// Sets the interval of the hop's probes.
    pub(super) fn set_interval(&self, probes: ProbeInterval) {
        self.tenths.store(probes.tenths(), Ordering::Relaxed);
    }

    fn interval(&self) -> ProbeInterval {
        ProbeInterval::from_tenths(self.tenths.load(Ordering::Relaxed)).unwrap_or_default()
    }

    /// Notes that data have arrived.
    pub(super) fn note_heard(&self) {
        self.heard.store(self.now(), Ordering::Relaxed);
    }

    /// Notes that data were sent.
    pub(super) fn note_sent(&self) {
        self.sent.store(self.now(), Ordering::Relaxed);
    }

    /// Returns the time until this end must send something.
    pub(super) fn quiet_left(&self) -> Duration {
        if !self.is_proven() {
            return self.interval().time().into();
        }
        self.quiet_until().saturating_sub(self.begun.elapsed())
    }

    /// Waits until the other end was silent for too long.
    pub(super) async fn silent(&self) {
        loop {
            let until = self.begun + self.silent_until();
            if Instant::now() >= until {
                return;
            }
            sleep_until(until).await;
        }
    }

    /// Returns the time since the begin at which this end must send something: one and a half intervals after the last data,
    /// because the end of a hop that is probed sends only answers.
    fn quiet_until(&self) -> Duration {
        let sent = Duration::from_nanos(self.sent.load(Ordering::Relaxed));
        sent + Duration::from(self.interval().time()) * 3 / 2
    }

    /// Returns the time since the begin at which the other end was silent for three intervals. The first data may take
    /// longer: the other end may still wait for the introduction of this one.
    fn silent_until(&self) -> Duration {
        let heard = Duration::from_nanos(self.heard.load(Ordering::Relaxed));
        let silence = Duration::from(self.interval().silence_max());
        heard + if heard.is_zero() { silence.max(OPEN_MAX) } else { silence }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_connection_lives_as_long_as_the_probes_of_its_hop() {
        let liveness = Liveness::new(ProbeInterval::SHORTEST, true);
        assert_eq!((liveness.quiet_until(), liveness.silent_until()), (ms(900), OPEN_MAX));
        let stranger = Liveness::new(ProbeInterval::SHORTEST, false);
        stranger.sent.store(1, Ordering::Relaxed);
        assert!(stranger.quiet_left() > Duration::ZERO && !stranger.is_proven());
        liveness.heard.store(100_000_000, Ordering::Relaxed);
        liveness.sent.store(700_000_000, Ordering::Relaxed);
        assert_eq!((liveness.quiet_until(), liveness.silent_until()), (ms(1_600), ms(1_900)));
        liveness.set_interval(ProbeInterval::from_tenths(500).unwrap());
        assert_eq!((liveness.quiet_until(), liveness.silent_until()), (ms(75_700), ms(150_100)));
    }
}
