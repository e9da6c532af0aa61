//! Encoding and decoding of messages and of malformed bytes.

use super::*;
use proptest::prelude::*;

fn name(number: u64) -> Name {
    let key = Key { origin: NodeIndex(0x0123_4567_89ab_cdef), number };
    Name { key, stamp: Stamp { epoch: 3, seq: 300 } }
}

fn wanted(trunk: u128) -> Wanted {
    let dual = Dual { peak_burst: 1_500, peak_rate: 100_000_000, burst: 22_500, rate: 10_000_000 };
    Wanted {
        trunk: Trunk(trunk),
        traffic: Traffic::new(dual, 1_500, 1_000).unwrap(),
        bunched: Duration::from_micros(7),
        within: Duration::from_millis(60),
        loss: LossTolerance::new(1, 10).unwrap(),
        level: Some(7),
    }
}

fn messages() -> Vec<ReserveMessage> {
    let share = Share { rate: 1, burst: 2, bound: Duration::from_nanos(3) };
    let mut all = vec![
        ReserveMessage::Admit(Box::new(Admit {
            name: name(1),
            path: vec![NodeIndex(1), NodeIndex(2), NodeIndex(u64::MAX)],
            weights: vec![1, u32::MAX],
            label: vec![0, 0xff, 7],
            period: Duration::from_secs(1),
            forward: Some(wanted(u128::MAX)),
            backward: Some(Wanted { level: None, loss: LossTolerance::EDF, ..wanted(5) }),
            scaled: Some(Box::new(Scaled { at: 1, wanted: wanted(6) })),
            spent: Duration::from_millis(20),
        })),
        ReserveMessage::Accept(Accept {
            name: name(2),
            slack: Duration::from_nanos(9),
            backward: Some(Duration::from_millis(4)),
            hops: vec![
                HopShare { node: NodeIndex(4), forward: Some(share), backward: None },
                HopShare { node: NodeIndex(5), forward: None, backward: Some(share) },
            ],
        }),
        ReserveMessage::Close(name(3)),
        ReserveMessage::Closed(name(4)),
        ReserveMessage::Refresh(Refresh {
            back: true,
            period: Duration::from_millis(10),
            names: vec![name(1), name(2)],
        }),
    ];
    all.extend(denials());
    all
}

/// A DENY for each reason, and for each resource.
fn denials() -> Vec<ReserveMessage> {
    let mut all = Vec::new();
    let offer = LinkOffer {
        rate: Some(1),
        burst: Some(2),
        deadline: Some(Duration::from_nanos(3)),
        loss: LossTolerance::new(1, 2).ok(),
    };
    let refused = |resource| Reason::Refused {
        forward: true,
        refusal: LinkRefusal { resource, needed: 2, available: 1, offer },
    };
    let due = Resource::Due { within: Duration::from_millis(5) };
    let reasons = [
        Resource::Rate,
        Resource::Burst,
        Resource::Packet,
        Resource::Buffer,
        Resource::Cpu,
        Resource::Delay,
        due,
        Resource::Windows,
        Resource::Places,
        Resource::Guarantee,
        Resource::HostBuffer,
    ]
    .map(refused);
    let others = [
        Reason::Timeout,
        Reason::PeerLost,
        Reason::Unknown,
        Reason::Declined,
        Reason::NoRoute,
        Reason::Full,
        Reason::Impossible,
        Reason::Contradiction,
    ];
    for reason in reasons.into_iter().chain(others) {
        let deny =
            Deny { name: name(6), node: NodeIndex(9), reason, retry: Duration::from_millis(500) };
        all.push(ReserveMessage::Deny(deny));
    }
    all
}

fn bytes(message: &ReserveMessage) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(message, &mut bytes);
    bytes
}

#[test]
fn every_message_round_trips_and_no_prefix_decodes() {
    for message in messages() {
        let bytes = bytes(&message);
        assert_eq!(decode(&bytes), Ok(message.clone()));
        for end in 0..bytes.len() {
            assert!(decode(&bytes[..end]).is_err(), "{message:?} cut at {end}");
        }
        let more = [&bytes[..], &[0]].concat();
        assert_eq!(decode(&more), Err(CodecError::Trailing(1)));
    }
}

#[test]
fn arbitrary_bytes_decode_to_a_canonical_message_or_an_error() {
    let (mut state, mut read) = (1u64, 0);
    for message in messages() {
        let original = bytes(&message);
        for _ in 0..2_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let mut changed = original.clone();
            let place = usize::try_from(state >> 40).unwrap() % changed.len();
            changed[place] ^= u8::try_from(state >> 20 & 0xff).unwrap() | 1;
            if let Ok(other) = decode(&changed) {
                assert_eq!(bytes(&other), changed, "one encoding only");
                read += 1;
            }
        }
    }
    assert!(read > 1_000, "{read}");
}

#[test]
fn out_of_range_fields_are_named() {
    let ReserveMessage::Refresh(refresh) = &messages()[4] else { panic!("a refresh") };
    for period in [0, 9_999_999, 3_600_000_000_001] {
        let period = Duration::from_nanos(period);
        let wrong = bytes(&ReserveMessage::Refresh(Refresh { period, ..refresh.clone() }));
        assert_eq!(decode(&wrong), Err(CodecError::Invalid("period")), "never a life of 0");
    }
    let names = vec![name(1); NAMES_MAX + 1];
    let many = bytes(&ReserveMessage::Refresh(Refresh { names, ..refresh.clone() }));
    assert_eq!(decode(&many), Err(CodecError::Invalid("names")));
    assert_eq!(decode(&[9]).unwrap_err().to_string(), "invalid kind");
    assert_eq!(decode(&[6, 3]), Err(CodecError::Invalid("kind")));
    assert_eq!(
        decode(&[3, 0x80, 0x00, 1, 1, 1]),
        Err(CodecError::Invalid("origin")),
        "a number has one encoding"
    );
}

/// Returns an end of a range, or a number of any order of magnitude in it.
fn number(min: u64, max: u64) -> impl Strategy<Value = u64> {
    let inner = (any::<u64>(), 0..64_u32)
        .prop_map(move |(bits, shift)| min + (bits >> shift) % (max - min).max(1));
    prop_oneof![Just(min), Just(max), inner]
}

fn time() -> impl Strategy<Value = Duration> {
    number(0, u64::MAX).prop_map(Duration::from_nanos)
}

/// Traffic as the declarations of the API make it: of one sample in each period, with a long-term curve below it or not.
fn traffic() -> impl Strategy<Value = Traffic> {
    let sample = (number(1, 80 << 20), number(1, 10_u64.pow(18)), time(), time());
    let rest = (number(1, 2_000), any::<[bool; 3]>(), number(1, u64::MAX), number(1, 1 << 40));
    (sample, rest).prop_filter_map(
        "impossible traffic",
        |((bytes, period, jitter, gap), (packet, [clocked, bare, varies], rate, burst))| {
            let early = (Duration::from_nanos(period), jitter);
            let peak = Traffic::spaced(bytes, early, gap, packet).ok()?;
            let peak =
                if clocked { peak.with_clock(gap.max(Duration::from_nanos(1))) } else { peak };
            let Dual { peak_burst, peak_rate, rate: most, .. } = peak.dual();
            let (rate, burst) = (rate.min(most), burst.max(peak_burst));
            let long = Dual { peak_burst, peak_rate, burst, rate };
            let long = peak.with_long_term(long, rate.div_ceil(8 * peak.packet()));
            let traffic = if varies { long.unwrap_or(peak).varying(true) } else { peak };
            Some(if bare { traffic.without_samples() } else { traffic })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn any_traffic_is_read_as_it_is(
        traffic in traffic(),
        trunk in any::<u128>(),
        (bunched, within) in (time(), time()),
        level in proptest::option::of(any::<u32>()),
        (x, y) in (0..=LossTolerance::Y_MAX, 1..=LossTolerance::Y_MAX),
    ) {
        let loss = LossTolerance::new(x.min(y), y).unwrap();
        let wanted = Wanted { trunk: Trunk(trunk), traffic, bunched, within, loss, level };
        let ReserveMessage::Admit(admit) = messages().swap_remove(0) else { panic!("no request") };
        let admit = Admit { forward: Some(wanted), ..*admit };
        let message = ReserveMessage::Admit(Box::new(admit));
        prop_assert_eq!(decode(&bytes(&message)), Ok(message));
    }
}
