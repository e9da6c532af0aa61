//! A measurement of servers without a node.

use super::peers::{Peer, random, wait};
use super::{clock, peers, service, view};
use crate::time::{ClockConfig, ClockReport};
use paceline_sched::Duration;
use paceline_time::clock::service::ClockSettings;
use paceline_time::ntp::source::SAMPLES_MIN;
use std::os::unix::net::UnixStream;

impl ClockConfig {
    /// Measures the servers for at most `time`, without a node: 4 requests to each, 2 s apart or a quarter of the
    /// shortest interval.
    ///
    /// # Errors
    /// Returns the first wrong setting, or the error of the operating system.
    pub fn measure(&self, time: std::time::Duration) -> Result<ClockReport, String> {
        probe(self, time)
    }
}

/// Measures the servers of `config`; ends before `time` when every server has answered 4 requests.
fn probe(config: &ClockConfig, time: std::time::Duration) -> Result<ClockReport, String> {
    let (mut service, _) = service(config, ClockSettings::default())?;
    let (_stop, stopped) = UnixStream::pair().map_err(|error| error.to_string())?;
    let mut peers: Vec<_> = config.servers.iter().map(|server| Peer::new(server)).collect();
    let start = clock::raw();
    let until = start.saturating_add(Duration::from(time).as_nanos());
    loop {
        let now = clock::hosts();
        service.observe(now);
        peers.iter_mut().for_each(|peer| peer.renew(now.raw, false));
        let is_full = |answers| answers >= u64::from(SAMPLES_MIN);
        if now.raw >= until || service.sources().all(|(source, _)| is_full(source.answers())) {
            break;
        }
        while let Some((at, packet)) = service.request(clock::raw(), random()) {
            let raw = clock::raw();
            if peers.get(at).is_some_and(|peer| peer.send(&packet)) {
                service.sent(at, raw);
            }
        }
        let next = service.next_wakeup().unwrap_or(u64::MAX).min(until);
        wait(&stopped, (None, None), &peers, next.saturating_sub(clock::raw()).min(1_000_000_000));
        let mut buffer = [0; peers::BYTES_MAX];
        for (at, peer) in peers.iter().enumerate() {
            while let Some((bytes, raw)) = peer.receive(&mut buffer) {
                let _ = service.receive(at, bytes, raw, clock::wall());
            }
        }
    }
    let now = clock::hosts();
    let reading = service.read(now.raw, now.wall);
    let off = i128::from(now.wall) - i128::from(reading.nanos);
    Ok(ClockReport {
        nanos: reading.nanos,
        error_nanos: Some(reading.error()).filter(|error| *error != u64::MAX),
        epoch: reading.epoch,
        system_offset_nanos: i64::try_from(off).unwrap_or_default(),
        ..view::report(&service, peers.iter().map(Peer::name), std::iter::empty(), None, now)
    })
}
