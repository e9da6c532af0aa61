//! Packets, the filter, the selection, the server and the page, each by itself.
#![cfg(test)]

use paceline_time::clock::page::{ClockPage, WORDS};
use paceline_time::clock::service::{ClockService, ClockSettings, HostClocks, ServerFacts};
use paceline_time::ntp::filter::{ClockFilter, Measurement};
use paceline_time::ntp::packet::{Leap, NtpPacket, NtpShort, NtpTime};
use paceline_time::ntp::select::{Candidate, agreeing, cluster, combine, majority, steering};
use paceline_time::ntp::source::{NtpSource, PollRange, Rejected, interval};
use paceline_time::server::NtpServer;
use paceline_time::{ClockReading, ClockStatus, SharedClock, TimeBounds};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr};

const SECOND: u64 = 1_000_000_000;
const NOW: u64 = 1_795_737_600 * SECOND;

fn at(source: usize, offset: i64, distance: u64) -> Candidate {
    Candidate { source, offset, distance, jitter: 1, stratum: 1 }
}

proptest! {
    #[test]
    fn any_bytes_are_a_packet_of_the_same_bytes_or_none(bytes in prop::collection::vec(any::<u8>(), 0..70)) {
        match NtpPacket::decode(&bytes) {
            Some(packet) => prop_assert_eq!(&packet.encode()[..], &bytes[..48]),
            None => prop_assert!(bytes.len() < 48),
        }
    }

    #[test]
    fn times_survive_within_a_nanosecond_of_any_era(unix in 0..u64::MAX / 2, off in -2_000_000_000_i64..2_000_000_000) {
        let pivot = unix.saturating_add_signed(off * 1_000_000_000);
        let back = NtpTime::from_unix(unix).to_unix(pivot).unwrap();
        prop_assert!(unix - back <= 1, "{} {}", unix, back);
    }

    #[test]
    fn no_reading_is_before_an_earlier_one_for_any_pages_and_raw_clocks(
        pages in prop::collection::vec(prop::array::uniform12(any::<u64>()), 1..20),
        raws in prop::collection::vec(any::<u64>(), 1..20),
    ) {
        let shared = SharedClock::default();
        let (mut before, mut stamped) = (0, 0);
        for words in pages {
            let words: [u64; WORDS] = words;
            let page = ClockPage::from_words(words).with_status(ClockStatus::Synchronised);
            shared.publish(&page);
            for raw in &raws {
                let reading = shared.read(*raw, || 0);
                prop_assert!(reading.nanos >= before);
                before = reading.nanos;
                let stamp = shared.stamp(*raw, || 0).nanos;
                prop_assert!(stamp > stamped || stamp == u64::MAX);
                stamped = stamp;
            }
        }
    }

    #[test]
    fn the_majority_contains_the_truth_while_fewer_than_half_are_false(
        errors in prop::collection::vec((-100_i64..100, 0_u64..50), 1..8),
        lies in prop::collection::vec((-500_i64..500, 0_u64..200), 0..7),
    ) {
        // Honest servers contain 0.
        let honest = errors.iter().map(|(off, more)| at(0, *off, off.unsigned_abs() + more));
        let most = (errors.len() - 1).min(lies.len());
        let all: Vec<_> = honest.chain(lies.iter().take(most).map(|(off, far)| at(1, *off, *far))).collect();
        let (low, high) = majority(&all, all.len()).unwrap();
        prop_assert!((low..=high).contains(&0), "{low} {high}");
        // The clock has servers to follow whenever it has a bound, and no honest one is called false.
        let agreeing = agreeing(&all);
        prop_assert!(!agreeing.is_empty() && !steering(&agreeing, (low, high)).is_empty());
        let mut honest = all.iter().filter(|one| one.source == 0);
        prop_assert!(honest.all(|one| !one.contradicts((low, high))), "{low} {high}");
    }

    #[test]
    fn any_answer_is_used_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..60), raw in any::<u64>(), nonce in any::<u64>()) {
        let mut source = NtpSource::new(PollRange::OWN, 0);
        source.request(0, nonce).unwrap();
        let mut bytes = bytes;
        if let Some(origin) = bytes.get_mut(24..32) {
            origin.copy_from_slice(&nonce.max(1).to_be_bytes());
        }
        let _ = source.receive(&bytes, raw, NOW);
    }
}

#[test]
fn the_formats_are_those_of_the_standard() {
    // RFC 5905, figure 4: the Unix epoch, and the first day of era 1.
    assert_eq!(NtpTime::from_unix(0), NtpTime(2_208_988_800 << 32));
    assert_eq!(NtpTime(63_104 << 32).to_unix(NOW), Some((2_085_978_496 + 63_104) * SECOND));
    assert_eq!(NtpTime::from_unix(NOW + SECOND / 2).0 & 0xffff_ffff, 1 << 31);
    assert_eq!((NtpShort::from_nanos(1).0, NtpShort::from_nanos(u64::MAX).0), (1, u32::MAX));
    assert_eq!(NtpShort(1 << 16).as_nanos(), SECOND);
    let request = NtpPacket::request(7, 6).encode();
    assert_eq!((request[0], request[2], request[47]), (0x23, 6, 7));
}

#[test]
fn the_filter_prefers_the_smallest_error_and_forgets_after_eight() {
    let mut filter = ClockFilter::default();
    let measurement = |raw, error| Measurement { raw, offset: 0, delay: 0, error };
    filter.push(measurement(SECOND, 10));
    for one in 2..=8 {
        filter.push(measurement(one * SECOND, 1_000_000));
    }
    assert_eq!(filter.best(8 * SECOND, 15_000_000).map(|best| best.raw), Some(SECOND));
    // 500 ppm over 7 s are more than 1 ms.
    assert_eq!(filter.best(8 * SECOND, 500_000_000).map(|best| best.raw), Some(8 * SECOND));
    filter.push(measurement(9 * SECOND, 2_000_000));
    assert_eq!(filter.best(9 * SECOND, 0).map(|best| best.raw), Some(8 * SECOND));
    (0..8).for_each(|_| filter.push_silence());
    assert!(filter.is_empty());
}

fn sources(all: &[Candidate]) -> Vec<usize> {
    all.iter().map(|one| one.source).collect()
}

#[test]
fn servers_agree_whose_intervals_contain_all_points_of_the_most() {
    let agree = |all: &[Candidate]| sources(&agreeing(all));
    assert_eq!(agree(&[at(0, 0, 10), at(1, 5, 10), at(2, -3, 10), at(3, 90, 10)]), [0, 1, 2]);
    // Midpoints do not matter.
    assert_eq!(agree(&[at(0, 0, 10), at(1, 2, 10), at(2, 15, 30)]), [0, 1, 2]);
    assert_eq!(agree(&[at(0, 0, 10), at(1, 110, 4_300)]), [0, 1]);
    assert_eq!(agree(&[at(0, 0, 10), at(1, 110, 4_300), at(2, 9_000, 10)]), [0, 1]);
    // Either the first or the second is false.
    assert_eq!(agree(&[at(0, 0, 10), at(1, 100, 10), at(2, 50, 100)]), [2]);
    // Two against two.
    assert_eq!(agree(&[at(0, 0, 1), at(1, 0, 1), at(2, 9, 1), at(3, 9, 1)]), [0_usize; 0]);
    assert_eq!(agree(&[]), [0_usize; 0]);
}

#[test]
fn offsets_outside_of_the_bound_steer_only_if_all_are() {
    let steer = |all: &[Candidate]| sources(&steering(all, majority(all, all.len()).unwrap()));
    assert_eq!(steer(&[at(0, 0, 10), at(1, 110, 4_300)]), [0]);
    assert_eq!(steer(&[at(0, 0, 10), at(1, 15, 10)]), [0, 1]);
}

#[test]
fn clustering_removes_the_most_distant_offsets_and_keeps_three() {
    let kept =
        cluster(vec![at(0, 0, 10), at(1, 1, 11), at(2, -1, 12), at(3, 900, 1_000), at(4, 2, 13)]);
    assert!(kept.iter().all(|one| one.source != 3) && kept.len() >= 3, "{kept:?}");
    assert_eq!(cluster(vec![at(0, 0, 1), at(1, 900, 1)]).len(), 2);
    // The weight is the inverse of the distance.
    let combined = combine(&[at(0, 0, 100), at(1, 300, 200)]).unwrap();
    assert!((99..=100).contains(&combined.offset), "{combined:?}");
    assert_eq!(combine(&[]), None);
}

/// An answer of an honest server to `request`.
fn answer(request: &NtpPacket, received: u64) -> NtpPacket {
    NtpPacket {
        version: 4,
        mode: 4,
        stratum: 1,
        precision: -20,
        origin: request.transmit,
        receive: NtpTime::from_unix(received),
        transmit: NtpTime::from_unix(received),
        ..NtpPacket::default()
    }
}

#[test]
fn a_kiss_of_death_makes_requests_rarer_or_ends_them() {
    let mut source = NtpSource::new(PollRange::OWN, 0);
    let mut raw = 0;
    let mut kiss = |source: &mut NtpSource, code| {
        raw = source.next_request().unwrap();
        let request = source.request(raw, raw + 1).unwrap();
        let packet = NtpPacket { stratum: 0, reference_id: code, ..answer(&request, NOW) };
        (raw, source.receive(&packet.encode(), raw + 1, NOW))
    };
    for poll in [1, 2, 3] {
        let (raw, result) = kiss(&mut source, *b"RATE");
        assert_eq!(result, Err(Rejected::RateLimited));
        assert_eq!(source.next_request(), Some(raw + 1 + interval(poll)));
    }
    assert_eq!(kiss(&mut source, *b"DENY").1, Err(Rejected::Denied));
    assert_eq!(source.next_request(), None);
}

#[test]
fn an_answer_is_used_once_and_only_if_it_belongs_to_the_request() {
    let mut source = NtpSource::new(PollRange::PUBLIC, 0);
    let request = source.request(0, 77).unwrap();
    let good = answer(&request, NOW);
    let other = NtpPacket { origin: NtpTime(78), ..good };
    assert_eq!(source.receive(&other.encode(), 10, NOW), Err(Rejected::Unrequested));
    assert_eq!(source.receive(&good.encode()[..47], 10, NOW), Err(Rejected::Malformed));
    assert_eq!(source.receive(&good.encode(), 10, NOW), Ok(()));
    assert_eq!(source.receive(&good.encode(), 10, NOW), Err(Rejected::Unrequested));
    // RFC 5905: the burst is 2 s apart for servers on the Internet.
    assert_eq!(source.next_request(), Some(2 * SECOND));
    let faster = |packet: &NtpPacket| NtpPacket {
        transmit: NtpTime::from_unix(NOW + SECOND / 2),
        ..*packet
    };
    let request = source.request(2 * SECOND, 79).unwrap();
    let packet = faster(&answer(&request, NOW));
    assert_eq!(source.receive(&packet.encode(), 2 * SECOND + 1_000, NOW), Err(Rejected::Delay));
}

fn reading(status: ClockStatus) -> ClockReading {
    ClockReading { nanos: NOW, bounds: TimeBounds::new(NOW, 70_000), status, epoch: 1 }
}

#[test]
fn a_server_answers_with_its_bound_and_limits_the_rate() {
    let mut server = NtpServer::default();
    let client = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    let facts = ServerFacts {
        stratum: 3,
        root_delay: 20_000,
        leap: Leap::Insert,
        ..ServerFacts::default()
    };
    let request = NtpPacket::request(42, 4).encode();
    let mut ask = |raw, status| {
        let now = (reading(status), reading(status));
        server
            .answer(&request, client, raw, &facts, now)
            .and_then(|bytes| NtpPacket::decode(&bytes))
    };
    let answer = ask(0, ClockStatus::Synchronised).unwrap();
    assert_eq!(
        (answer.mode, answer.stratum, answer.leap, answer.origin),
        (4, 3, Leap::Insert, NtpTime(42))
    );
    let root = answer.root_delay.as_nanos() / 2 + answer.root_dispersion.as_nanos();
    assert!((70_000..150_000).contains(&root), "{root}");
    let unsure = ask(0, ClockStatus::Unsynchronised).unwrap();
    assert_eq!((unsure.stratum, unsure.leap), (16, Leap::Unknown));
    // 16 at once, then a kiss and silence, then one per 250 ms.
    let answers: Vec<_> = (0..30).map(|_| ask(0, ClockStatus::Synchronised)).collect();
    assert!(answers[..14].iter().all(|one| one.is_some_and(|one| one.stratum == 3)));
    assert!(answers[14].is_some_and(|one| one.stratum == 0 && one.reference_id == *b"RATE"));
    assert!(answers[15..22].iter().all(Option::is_none));
    assert!(ask(SECOND / 4, ClockStatus::Synchronised).is_some_and(|one| one.stratum == 3));
    for wrong in [&request[..40], &[0; 48][..]] {
        let now = (reading(ClockStatus::Synchronised), reading(ClockStatus::Synchronised));
        assert!(server.answer(wrong, client, 0, &facts, now).is_none());
    }
    assert_eq!(server.counters().malformed, 2);
}

#[test]
fn a_flood_of_clients_does_not_grow_the_server() {
    let mut server = NtpServer::default();
    let request = NtpPacket::request(42, 4).encode();
    let now = (reading(ClockStatus::Synchronised), reading(ClockStatus::Synchronised));
    for number in 0..20_000_u32 {
        let client = IpAddr::V4(Ipv4Addr::from(number));
        server.answer(&request, client, 0, &ServerFacts::default(), now);
    }
    let counters = server.counters();
    assert_eq!((counters.answered, counters.limited), (4_096, 20_000 - 4_096));
}

#[test]
fn a_system_clock_that_is_adjusted_by_another_program_is_a_server() {
    let settings = ClockSettings { system_error: Some(1_000_000) };
    let mut service = ClockService::new(settings, &[], 0);
    for second in 0..5 {
        let raw = second * SECOND;
        service.observe(HostClocks { raw, boot: raw, wall: NOW + raw });
    }
    let reading = service.read(5 * SECOND, 0);
    assert_eq!(reading.status, ClockStatus::Synchronised);
    assert!(
        reading.bounds.earliest <= NOW + 5 * SECOND && NOW + 5 * SECOND <= reading.bounds.latest
    );
    assert_eq!(service.facts().stratum, 10);
    assert!((1_000_000..3_000_000).contains(&reading.error()), "{reading:?}");
}
