//! The report of a clock.

use super::peers::Listener;
use crate::time::config::{address_of, key_of};
use crate::time::{ClockReport, ClockStatus, SourceKind, SourceReport, TimeService};
use paceline_time::clock::service::{ClockService, HostClocks, SourcePart};
use paceline_time::ntp::source::NtpSource;
use std::time::Duration;

/// Returns the state of a clock and its servers at the instant `now`. `servers` names the servers as configured, and
/// `neighbours` the followed nodes.
pub(super) fn report<'n>(
    service: &ClockService,
    servers: impl Iterator<Item = &'n str>,
    neighbours: impl Iterator<Item = &'n str>,
    listener: Option<&Listener>,
    now: HostClocks,
) -> ClockReport {
    let reading = service.read(now.raw, now.wall);
    let (disruptions, cause) = service.disruptions();
    let follows = matches!(reading.status, ClockStatus::Synchronised | ClockStatus::Holdover);
    let servers = servers.map(|server| SourceReport {
        address: address_of(server).to_owned(),
        key: key_of(server).ok().flatten(),
        ..SourceReport::default()
    });
    let neighbours = neighbours.map(|name| SourceReport {
        kind: SourceKind::Neighbour,
        address: name.to_owned(),
        ..SourceReport::default()
    });
    let rows = servers.chain(neighbours).zip(service.sources());
    let mut sources: Vec<_> = rows
        .map(|(row, (source, selection))| {
            fill(row, service, (source, selection), (now.raw, reading.nanos))
        })
        .collect();
    sources.extend(service.system_selection().map(|selection| SourceReport {
        kind: SourceKind::System,
        address: SourceKind::System.name().to_owned(),
        selection,
        ..SourceReport::default()
    }));
    ClockReport {
        status: reading.status,
        frequency_ppt: service.rate(),
        jitter_nanos: service.jitter(),
        stratum: follows.then_some(service.facts().stratum),
        leap: service.facts().leap.to_string(),
        updates: service.updates(),
        disruptions,
        disruption: cause.map(|cause| cause.name().to_owned()),
        serves: listener.map(service_of),
        is_follower: false,
        sources,
        // The handle fills in the reading.
        ..ClockReport::default()
    }
}

fn service_of(listener: &Listener) -> TimeService {
    let served = listener.counters();
    TimeService {
        address: listener.address().to_owned(),
        answered: served.answered,
        kissed: served.kissed,
        limited: served.limited,
        malformed: served.malformed,
        unauthenticated: served.unauthenticated,
    }
}

/// Adds the state of `source` to its row, at the instant `raw` and the time `ours` of the clock.
fn fill(
    row: SourceReport,
    service: &ClockService,
    (source, selection): (&NtpSource, SourcePart),
    (raw, ours): (u64, u64),
) -> SourceReport {
    let best = source.filter().best(raw, service.phi());
    let theirs = best.map(|best| raw.saturating_add_signed(service.offset_at(&best, raw)));
    let off = theirs.map_or(0, |theirs| i128::from(theirs) - i128::from(ours));
    let counted = source.rejections().filter(|(_, count)| *count > 0);
    SourceReport {
        selection,
        stratum: source.state().map(|state| state.stratum),
        reach: source.reach(),
        poll: Duration::from_nanos(source.poll_nanos()),
        offset_nanos: i64::try_from(off).unwrap_or_default(),
        delay_nanos: best.map_or(0, |best| best.delay),
        jitter_nanos: best.map_or(0, |best| source.filter().jitter(&best, service.rate())),
        error_nanos: best.map(|best| best.error_at(raw, service.phi())),
        answers: source.answers(),
        rejected: counted.map(|(cause, count)| (cause.name().to_owned(), count)).collect(),
        ..row
    }
}
