//! Packets as senders write them, cut again into units.

use super::*;
use paceline_media::stream::{Detected, StreamReader, detect};
use proptest::prelude::*;

const H264: TrackFormat = TrackFormat::H264;

/// A packet that owns its payload.
#[derive(Clone, Debug)]
struct Own(i64, bool, Vec<u8>);

/// Returns the events of packets, of which those at `lost` do not arrive.
fn events(format: TrackFormat, packets: &[Own], lost: &[usize]) -> Vec<RtpEvent> {
    let mut depacketizer = Depacketizer::new(format);
    let (mut events, mut missing) = (Vec::new(), 0);
    for (place, Own(time, marker, payload)) in packets.iter().enumerate() {
        if lost.contains(&place) {
            missing += 1;
            continue;
        }
        let packet = RtpPacket { time: *time, marker: *marker, lost: missing, payload };
        missing = 0;
        depacketizer.push(&packet, &mut events);
    }
    events
}

fn units(events: &[RtpEvent]) -> Vec<(i64, Vec<u8>)> {
    let unit = |event: &RtpEvent| match event {
        RtpEvent::Unit { time, bytes } => Some((*time, bytes.clone())),
        RtpEvent::Fault(_) => None,
    };
    events.iter().filter_map(unit).collect()
}

fn faults(events: &[RtpEvent]) -> Vec<UnitFault> {
    let fault = |event: &RtpEvent| match event {
        RtpEvent::Fault(fault) => Some(*fault),
        RtpEvent::Unit { .. } => None,
    };
    events.iter().filter_map(fault).collect()
}

fn annexb(nals: &[&[u8]]) -> Vec<u8> {
    nals.iter().flat_map(|nal| [&[0, 0, 0, 1], *nal].concat()).collect()
}

/// Packs a NAL unit of H.264 in fragments of at most `most` bytes.
fn fragments(nal: &[u8], most: usize) -> Vec<Vec<u8>> {
    let parts: Vec<&[u8]> = nal[1..].chunks(most).collect();
    let last = parts.len() - 1;
    let one = |(place, part): (usize, &&[u8])| {
        let bits = u8::from(place == 0) << 7 | u8::from(place == last) << 6;
        [&[nal[0] & 0xe0 | 28, bits | nal[0] & 0x1f], *part].concat()
    };
    parts.iter().enumerate().map(one).collect()
}

fn aggregate(header: &[u8], nals: &[&[u8]]) -> Vec<u8> {
    let one = |nal: &&[u8]| [&u16::try_from(nal.len()).unwrap().to_be_bytes()[..], *nal].concat();
    [header.to_vec(), nals.iter().flat_map(one).collect()].concat()
}

const SPS: &[u8] = &[0x67, 1, 2];
const PPS: &[u8] = &[0x68, 3];
const KEY: &[u8] = &[0x65, 0x88, 4, 5, 6, 7, 8, 9];
const KEY_2: &[u8] = &[0x65, 0x08, 4, 5];
const NEXT: &[u8] = &[0x41, 0x9a, 1, 2, 3, 4];

/// A key picture of two slices with parameter sets before each, as GStreamer's `config-interval=-1` writes it, and another picture.
fn stream() -> Vec<Own> {
    let mut packets = vec![Own(0, false, aggregate(&[0x78], &[SPS, PPS]))];
    packets.extend(fragments(KEY, 3).into_iter().map(|payload| Own(0, false, payload)));
    packets.push(Own(0, false, aggregate(&[0x78], &[SPS, PPS])));
    packets.push(Own(0, true, KEY_2.to_vec()));
    packets.push(Own(3_600, false, vec![0x09, 0xf0]));
    packets.push(Own(3_600, true, NEXT.to_vec()));
    packets
}

#[test]
fn pictures_end_at_the_marker_and_not_at_parameter_sets() {
    let events = events(H264, &stream(), &[]);
    let first = annexb(&[SPS, PPS, KEY, SPS, PPS, KEY_2]);
    let second = annexb(&[&[0x09, 0xf0], NEXT]);
    assert_eq!(units(&events), [(0, first), (3_600, second)]);
    assert_eq!(faults(&events), []);
}

#[test]
fn pictures_end_where_the_time_changes_if_markers_are_missing() {
    let mut packets = stream();
    packets.iter_mut().for_each(|packet| packet.1 = false);
    // Parameter sets of their own time belong to the next picture.
    packets.push(Own(7_100, true, SPS.to_vec()));
    packets.push(Own(7_200, true, KEY.to_vec()));
    let found = units(&events(H264, &packets, &[]));
    assert_eq!(found.iter().map(|(time, _)| *time).collect::<Vec<_>>(), [0, 3_600, 7_200]);
    assert_eq!(found[2].1, annexb(&[SPS, KEY]));
}

#[test]
fn any_lost_packet_is_a_fault_and_no_unit_of_its_picture() {
    let packets = stream();
    for lost in 0..packets.len() - 1 {
        let events = events(H264, &packets, &[lost]);
        assert!(faults(&events).contains(&UnitFault::Lost), "{lost}: {events:?}");
        // Parameter sets of the first picture, or the delimiter, may be lost: the gate and decoders know them.
        let whole = units(&events);
        assert!(whole.len() <= 1 + usize::from(lost == 0 || lost >= 6), "{lost}: {events:?}");
        for (_, unit) in whole {
            let slices = unit.windows(5).filter(|bytes| bytes[..4] == [0, 0, 0, 1]);
            let slices: Vec<u8> =
                slices.map(|bytes| bytes[4] & 0x1f).filter(|kind| *kind < 6).collect();
            assert!(slices == [5, 5] || slices == [1], "{lost}: {slices:?}");
        }
    }
}

#[test]
fn a_lost_first_slice_is_noticed_without_a_fragment() {
    let packets =
        [Own(0, true, NEXT.to_vec()), Own(9, false, KEY.to_vec()), Own(9, true, KEY_2.to_vec())];
    let lost = events(H264, &packets, &[1]);
    assert_eq!(units(&lost).len(), 1);
    assert_eq!(faults(&lost), [UnitFault::Lost], "once for the gap and the rest");
    // The end of one picture, and the first slice of the next.
    let two = [Own(0, false, KEY.to_vec()), Own(0, true, KEY_2.to_vec())];
    let two = [two.as_slice(), &packets[1..]].concat();
    assert_eq!(faults(&events(H264, &two, &[1, 2])), [UnitFault::Lost; 2]);
}

#[test]
fn several_gaps_of_one_picture_are_one_fault() {
    let key = [KEY, KEY].concat();
    let parts = fragments(&key, 2).into_iter();
    let mut packets: Vec<Own> = parts.map(|part| Own(0, false, part)).collect();
    packets.push(Own(0, true, KEY_2.to_vec()));
    packets.push(Own(9, true, NEXT.to_vec()));
    for lost in [[1, 3], [0, 2], [2, 4]] {
        let found = events(H264, &packets, &lost);
        assert_eq!(faults(&found), [UnitFault::Lost], "{lost:?}");
        assert_eq!(units(&found), [(9, annexb(&[NEXT]))]);
    }
    let packets = jpeg(80, 1, &[&[1], &[2], &[3], &[4], &[5]], &[]);
    assert_eq!(faults(&events(TrackFormat::Jpeg, &packets, &[1, 3])), [UnitFault::Lost]);
}

#[test]
fn markers_within_pictures_are_not_believed_again() {
    let one = |time| [Own(time, true, KEY.to_vec()), Own(time, true, KEY_2.to_vec())];
    let packets: Vec<Own> = (0..4).flat_map(|number| one(number * 3_600)).collect();
    let events = events(H264, &packets, &[]);
    assert_eq!(faults(&events), [UnitFault::Malformed("a marker within a picture")]);
    let times: Vec<i64> = units(&events).iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [0, 3_600, 7_200], "the first is torn, the last has not ended");
    assert_eq!(units(&events)[1].1, annexb(&[KEY, KEY_2]));
}

#[test]
fn pictures_of_a_camera_without_a_clock_end_at_their_markers() {
    let packets: Vec<Own> = (0..3).map(|_| Own(7, true, KEY.to_vec())).collect();
    let events = events(H264, &packets, &[]);
    assert_eq!((units(&events).len(), faults(&events)), (3, Vec::new()));
}

#[test]
fn a_camera_without_a_clock_loses_one_picture_by_one_packet() {
    let mut packets: Vec<Own> = Vec::new();
    for _ in 0..4 {
        packets.extend(fragments(KEY, 3).into_iter().map(|part| Own(7, false, part)));
        packets.push(Own(7, true, KEY_2.to_vec()));
    }
    for lost in 4..7 {
        let found = events(H264, &packets, &[lost]);
        assert_eq!((units(&found).len(), faults(&found)), (3, vec![UnitFault::Lost]), "{lost}");
    }
    // A packet that cannot be read, with the marker.
    packets[7].2 = vec![0x7f, 1];
    let found = events(H264, &packets, &[]);
    assert_eq!((units(&found).len(), faults(&found).len()), (3, 1));
    // The first packet of a picture cannot be read, after one with a loss.
    for time in [7, 8] {
        let mut packets = stream();
        packets.truncate(6);
        packets.iter_mut().for_each(|packet| packet.0 = 7);
        packets.push(Own(time, true, vec![0x7f, 1]));
        assert_eq!(faults(&events(H264, &packets, &[2])).len(), 2);
    }
    // A picture without its marker looks like one with the next.
    let found = events(H264, &packets, &[3]);
    assert_eq!((units(&found).len(), faults(&found)), (2, vec![UnitFault::Lost]));

    let packets: Vec<Own> = (0..4).flat_map(|_| jpeg(80, 1, &[&[1], &[2], &[3]], &[])).collect();
    for lost in 3..5 {
        let found = events(TrackFormat::Jpeg, &packets, &[lost]);
        assert_eq!((units(&found).len(), faults(&found)), (3, vec![UnitFault::Lost]), "{lost}");
    }
    let mut packets = packets;
    packets[5].2[3] = 9;
    let found = events(TrackFormat::Jpeg, &packets, &[]);
    assert_eq!((units(&found).len(), faults(&found).len()), (3, 1));
}

#[test]
fn h265_is_cut_from_single_units_aggregates_and_fragments() {
    let (vps, key) = ([0x40, 1, 9], [0x26, 1, 0x80, 1, 2, 3]);
    let second = [0x26, 1, 0x00, 5];
    let fragments = [vec![0x62, 1, 0x80 | 19, 0x80, 1], vec![0x62, 1, 0x40 | 19, 2, 3]];
    let packets = [
        Own(0, false, aggregate(&[0x60, 1], &[&vps, &vps])),
        Own(0, false, fragments[0].clone()),
        Own(0, false, fragments[1].clone()),
        Own(0, true, second.to_vec()),
    ];
    let whole = events(TrackFormat::H265, &packets, &[]);
    assert_eq!(units(&whole), [(0, annexb(&[&vps, &vps, &key, &second]))]);
    for lost in 1..3 {
        let events = events(TrackFormat::H265, &packets, &[lost]);
        assert_eq!((units(&events).len(), faults(&events).len()), (0, 1), "{lost}: {events:?}");
    }
}

#[test]
fn contradictions_have_a_reason() {
    let reason = |payloads: &[&[u8]]| {
        let mut packets = vec![Own(0, true, KEY.to_vec())];
        packets.extend(payloads.iter().map(|payload| Own(9, false, payload.to_vec())));
        faults(&events(H264, &packets, &[])).first().copied()
    };
    let malformed = |text| Some(UnitFault::Malformed(text));
    assert_eq!(reason(&[&[]]), malformed("an empty packet"));
    assert_eq!(reason(&[&[0xe5, 1]]), malformed("a NAL unit with the forbidden bit"));
    assert_eq!(reason(&[&[0x78, 0, 9, 1]]), malformed("an aggregate that is cut off"));
    assert_eq!(reason(&[&[0x78, 0]]), malformed("an aggregate that is cut off"));
    assert_eq!(reason(&[&[0x7c]]), malformed("a fragment without its header"));
    assert_eq!(reason(&[&[0x7c, 0x05, 1]]), malformed("a fragment without a start"));
    assert_eq!(reason(&[&[0x7c, 0x85, 1], &[0x7c, 0x85, 1]]), malformed("two fragments at once"));
    assert_eq!(reason(&[&[0x7c, 0x85, 1], KEY]), malformed("a NAL unit within a fragment"));
    assert_eq!(reason(&[&[0x7a, 1]]), malformed("a packet of the interleaved mode of H.264"));
    assert_eq!(reason(&[&[0x7f, 1]]), malformed("a packet of an unknown type"));
}

#[test]
fn a_picture_without_end_stays_within_the_limit() {
    let mut depacketizer = Depacketizer::new(H264);
    let (mut events, part) = (Vec::new(), vec![0x7c, 0x05]);
    let part = [part, vec![1; 60_000]].concat();
    let first = [&[0x7c, 0x85], &part[2..]].concat();
    for number in 0..2_000 {
        let payload = if number == 0 { &first } else { &part };
        let packet = RtpPacket { time: 0, marker: false, lost: 0, payload };
        depacketizer.push(&packet, &mut events);
    }
    assert_eq!(events, [RtpEvent::Fault(UnitFault::TooLarge)]);
}

#[test]
fn sound_passes_in_the_order_of_bytes_of_its_type() {
    let l16 = TrackFormat::L16 { rate: 44_100, channels: 1 };
    let packets = [Own(5, false, vec![1, 2, 3, 4, 5]), Own(9, false, vec![])];
    let events = events(l16, &packets, &[]);
    assert_eq!(units(&events), [(5, vec![2, 1, 4, 3])]);
    assert_eq!(faults(&events), [UnitFault::Malformed("a packet of sound without payload")]);
}

#[test]
fn blocks_of_aac_have_a_header_with_their_rate_and_length() {
    let aac = TrackFormat::Aac { rate: 48_000, channels: 2 };
    // Two blocks of 3 and 2 bytes.
    let both = vec![0, 32, 0, 3 << 3, 0, 2 << 3, 1, 2, 3, 4, 5];
    // A block of 5 bytes in two packets.
    let parts = [vec![0, 16, 0, 5 << 3, 1, 2, 3], vec![0, 16, 0, 5 << 3, 4, 5]];
    let [first, last] = parts;
    let packets = [
        Own(0, true, both),
        Own(2_048, false, first),
        Own(2_048, true, last),
        Own(3_072, true, vec![0, 16, 0]),
    ];
    let whole = events(aac, &packets, &[]);
    let found = units(&whole);
    assert_eq!(found[0], (0, vec![0xff, 0xf1, 0x4c, 0x80, 1, 0x5f, 0xfc, 1, 2, 3]));
    assert_eq!(found[1].0, 1_024);
    assert_eq!((found[2].0, &found[2].1[7..]), (2_048, &[1, 2, 3, 4, 5][..]));
    assert_eq!(faults(&whole), [UnitFault::Malformed("a packet of AAC that is cut off")]);
    let lost = events(aac, &packets[..3], &[1]);
    assert_eq!((units(&lost).len(), faults(&lost)), (2, vec![UnitFault::Lost]));
}

#[test]
fn any_data_of_aac_that_is_left_out_has_a_reason() {
    let aac = TrackFormat::Aac { rate: 48_000, channels: 2 };
    let part = |time, marker, data: &[u8]| Own(time, marker, [&[0, 16, 0, 9 << 3], data].concat());
    let whole = |time| Own(time, true, vec![0, 16, 0, 1 << 3, 1]);
    let found = |packets: &[Own], lost: &[usize]| {
        let found = events(aac, packets, lost);
        (units(&found).len(), faults(&found))
    };
    let wrong = |text| vec![UnitFault::Malformed(text)];
    let size = "a packet of AAC whose headers are none, or have another size than 16 bits";
    assert_eq!(found(&[Own(0, true, vec![0, 0, 1, 2])], &[]), (0, wrong(size)));
    assert_eq!(found(&[Own(0, true, vec![0, 8, 1, 2])], &[]), (0, wrong(size)));
    let end = "a block of AAC without its last fragment";
    assert_eq!(found(&[part(0, true, &[1, 2])], &[]), (0, wrong(end)));
    assert_eq!(found(&[part(0, false, &[1, 2]), whole(1_024)], &[]), (1, wrong(end)));
    assert_eq!(found(&[part(0, false, &[1, 2]), whole(0)], &[]), (1, wrong(end)));
    let other = Own(0, true, vec![0, 16, 0, 3 << 3, 1]);
    let twice = vec![UnitFault::Malformed(end); 2];
    assert_eq!(found(&[part(0, false, &[1, 2]), other], &[]), (0, twice));
    // The fragments after a loss are of the same block.
    let four = [0, 1, 2, 3].map(|at| part(0, at == 3, &[at, 1]));
    for lost in 0..3 {
        assert_eq!(found(&four, &[lost]), (0, vec![UnitFault::Lost]), "{lost}");
    }
}

/// Returns packets of a JPEG picture with a Q, of scan data in `parts`.
fn jpeg(q: u8, kind: u8, parts: &[&[u8]], tables: &[u8]) -> Vec<Own> {
    let mut offset = 0_u32;
    let last = parts.len() - 1;
    let one = |(place, part): (usize, &&[u8])| {
        let [_, a, b, c] = offset.to_be_bytes();
        let mut payload = vec![0, a, b, c, kind, q, 2, 1];
        if kind >= 64 {
            payload.extend_from_slice(&[0, 4, 0xff, 0xff]);
        }
        if place == 0 && q >= 128 {
            payload.extend_from_slice(&[0, 0, 0, u8::try_from(tables.len()).unwrap()]);
            payload.extend_from_slice(tables);
        }
        payload.extend_from_slice(part);
        offset += u32::try_from(part.len()).unwrap();
        Own(1, place == last, payload)
    };
    parts.iter().enumerate().map(one).collect()
}

#[test]
fn pictures_of_jpeg_get_the_headers_that_are_not_sent() {
    for (q, kind, tables) in [(80, 1, vec![]), (255, 0, vec![7; 128]), (200, 65, vec![9; 64])] {
        let found =
            units(&events(TrackFormat::Jpeg, &jpeg(q, kind, &[&[1, 2], &[3]], &tables), &[]));
        let [(1, picture)] = &found[..] else { panic!("{found:?}") };
        let size = paceline_media::jpeg::dimensions(picture).unwrap();
        assert_eq!((size.width, size.height), (16, 8));
        assert!(matches!(detect(picture, false), Detected::Container(_)));
        assert!(picture.ends_with(&[0, 63, 0, 1, 2, 3, 0xff, 0xd9]), "{picture:?}");
        let whole = StreamReader::new(paceline_media::stream::Container::Jpeg);
        let mut whole = whole;
        whole.push(picture);
        assert_eq!(whole.poll().unwrap().as_ref(), Some(picture), "Q {q}");
    }
    let wrong = |packets: &[Own], lost: &[usize]| faults(&events(TrackFormat::Jpeg, packets, lost));
    assert_eq!(wrong(&jpeg(80, 1, &[&[1], &[2], &[3]], &[]), &[1]), [UnitFault::Lost]);
    assert_eq!(wrong(&jpeg(80, 1, &[&[1], &[2]], &[]), &[0]), [UnitFault::Lost]);
    assert!(matches!(wrong(&jpeg(0, 1, &[&[1]], &[]), &[])[..], [UnitFault::Malformed(_)]));
    assert!(matches!(wrong(&jpeg(255, 1, &[&[1]], &[1; 3]), &[])[..], [UnitFault::Malformed(_)]));
    assert!(matches!(wrong(&jpeg(80, 7, &[&[1]], &[]), &[])[..], [UnitFault::Malformed(_)]));
}

proptest! {
    #[test]
    fn pictures_survive_any_division_into_packets(
        pictures in proptest::collection::vec(proptest::collection::vec((2_usize..300, 1_usize..100, any::<bool>()), 1..5), 1..8),
    ) {
        let (mut packets, mut expected) = (Vec::new(), Vec::new());
        for (time, slices) in (0_i64..).zip(&pictures) {
            let mut nals = Vec::new();
            for (place, (length, most, split)) in slices.iter().enumerate() {
                let begins = if place == 0 { 0x80 } else { 0 };
                let nal: Vec<u8> = [0x41, begins].into_iter().chain((2..*length).map(|_| 0x55)).collect();
                let parts = if *split && nal.len() > most + 1 { fragments(&nal, *most) } else { vec![nal.clone()] };
                packets.extend(parts.into_iter().map(|payload| Own(time * 3_600, false, payload)));
                nals.push(nal);
            }
            packets.last_mut().unwrap().1 = true;
            expected.push((time * 3_600, annexb(&nals.iter().map(Vec::as_slice).collect::<Vec<_>>())));
        }
        let found = events(H264, &packets, &[]);
        prop_assert_eq!(units(&found), expected);
    }

    #[test]
    fn units_after_losses_are_units_of_the_stream(
        lost in proptest::collection::btree_set(0_usize..120, 0..30), pictures in 10_usize..30,
    ) {
        let (mut packets, mut whole) = (Vec::new(), Vec::new());
        for time in (0_i64..).take(pictures) {
            let slices: [&[u8]; 2] = [&[0x41, 0x80, 1, 2, 3, 4, 5, 6], &[0x41, 0x11, 7]];
            packets.extend(fragments(slices[0], 3).into_iter().map(|payload| Own(time, false, payload)));
            packets.push(Own(time, true, slices[1].to_vec()));
            whole.push((time, annexb(&slices)));
        }
        let lost: Vec<usize> = lost.into_iter().collect();
        let found = events(H264, &packets, &lost);
        let units = units(&found);
        prop_assert!(units.iter().all(|unit| whole.contains(unit)), "{units:?}");
        // A loss is visible as soon as the next packet arrives.
        let last = packets.len() - 1;
        let visible = lost.iter().any(|place| *place < last && (*place..=last).any(|at| !lost.contains(&at)));
        prop_assert_eq!(visible, !faults(&found).is_empty());
    }
}
