//! Fuzz bodies for cameras: RTP packets, and addresses, logins and times.

use crate::input::Input;
use paceline_edge::{
    ArrivedPacket, CameraAddress, CaptureClock, Depacketizer, Gate, Login, Losses, PacketOrder,
    RtpEvent, RtpPacket, RtpTrack, TrackFormat,
};

/// The formats of tracks.
const FORMATS: [TrackFormat; 8] = [
    TrackFormat::H264,
    TrackFormat::H265,
    TrackFormat::Jpeg,
    TrackFormat::Aac { rate: 48_000, channels: 2 },
    TrackFormat::L16 { rate: 44_100, channels: 2 },
    TrackFormat::Opus { channels: 2 },
    TrackFormat::Pcmu { rate: 8_000, channels: 1 },
    TrackFormat::Pcma { rate: 8_000, channels: 1 },
];
/// The most bytes that a unit has in addition to its packets: the headers of a JPEG picture, or start codes.
const ADDED_MAX: usize = 1_024;

/// Reads the bytes as packets of a track. Units consist of received bytes and have received times; a lost packet is a fault.
///
/// Pictures that pass the gate can be classified again.
pub fn rtp(data: &[u8]) {
    let mut input = Input::new(data);
    let format = input.one_of(&FORMATS);
    let mut depacketizer = Depacketizer::new(format);
    let mut gate = format.codec().map(|codec| Gate::new(codec, &[b"\x67\x42", b"\x68"]));
    let (mut events, mut losses) = (Vec::new(), Losses::default());
    let (mut time, mut times, mut bytes) = (i64::from(input.byte()), Vec::new(), 0);
    let (mut units, mut faulty) = (0, None);
    while !input.is_empty() {
        let flags = input.byte();
        time += if flags & 2 == 0 { 0 } else { i64::from(input.byte()) - 3 };
        let lost = u32::from(flags & 4 != 0) * u32::from(input.byte());
        let payload = input.take(usize::from(flags >> 3) * 2);
        times.push(time);
        bytes += payload.len();
        let packet = RtpPacket { time, marker: flags & 1 != 0, lost, payload };
        let before = events.len();
        depacketizer.push(&packet, &mut events);
        if events[before..].iter().any(|event| matches!(event, RtpEvent::Fault(_))) {
            faulty = Some(time);
        }
        assert!(lost == 0 || faulty == Some(time), "a loss has a reason, once for a picture");
    }
    for event in events {
        let unit = match event {
            RtpEvent::Unit { time, bytes: unit } => {
                // A packet of AAC has several blocks of 1,024 samples.
                let begins = |begin: &i64| {
                    matches!(format, TrackFormat::Aac { .. }) && (time - begin) % 1_024 == 0
                };
                assert!(
                    times.iter().any(|begin| *begin == time || begins(begin)),
                    "{time} is no time of a packet"
                );
                // Start codes are four bytes for one at least.
                assert!(unit.len() <= bytes * 5 + ADDED_MAX, "{} of {bytes} bytes", unit.len());
                units += 1;
                unit
            }
            RtpEvent::Fault(fault) => {
                losses.add(fault);
                gate.iter_mut().for_each(Gate::lose);
                continue;
            }
        };
        match gate.as_mut().map(|gate| gate.take(&unit)) {
            Some(Ok(whole)) => assert!(format.codec().is_none_or(|codec| {
                paceline_media::codec::Units::new(codec).classify(&whole).is_ok()
            })),
            Some(Err(fault)) => losses.add(fault),
            None => {}
        }
    }
    assert!(units <= bytes, "no unit is empty");
    assert!(losses.to_string().len() < 400, "the report is one line");
}

/// Reads the bytes as an address and a login, whose errors and printed forms show no password, as times of a camera,
/// as a session description, and as packets out of order.
pub fn camera(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        match text.parse::<CameraAddress>() {
            Ok(address) => {
                let shown = address.to_string();
                assert!(shown.starts_with("rtsp://") && !shown.contains('@'), "{shown}");
                assert!(address.url().query().is_none_or(|_| shown.ends_with("?…")), "{shown}");
                assert!(
                    !address.redact(address.url().as_str()).contains('?') || shown.ends_with("?…")
                );
            }
            Err(error) => assert!(error.to_string().len() < 400, "an error is one line"),
        }
        if let Ok(login) = text.parse::<Login>() {
            assert!(!login.user().is_empty() && format!("{login:?}") == "Login(…)");
        }
    }
    descriptions(data);
    order(Input::new(data));
    let mut input = Input::new(data);
    let mut clock = CaptureClock::new(&[90_000, u32::from(input.u16())], 7);
    let mut now = 0_u64;
    while !input.is_empty() {
        let (track, kind) = (usize::from(input.below(3)), input.byte());
        let mut long = || (0..4).fold(0_u64, |all, _| all << 16 | u64::from(input.u16()));
        let time = long() as i64;
        if kind & 1 == 0 {
            clock.report(track, long(), time);
            continue;
        }
        now = now.saturating_add(long() >> (kind >> 2));
        let captured = clock.capture(track, time, now);
        assert!(captured.before_ns <= 10_000_000_000 && captured.bound_ns >= 7, "{captured:?}");
    }
}

fn descriptions(data: &[u8]) {
    match RtpTrack::parse(data) {
        Ok(tracks) => {
            assert!(
                tracks.len() <= 16
                    && tracks.iter().all(|track| track.port.checked_add(1).is_some())
            );
        }
        Err(error) => assert!(error.to_string().len() < 400, "an error is one line"),
    }
}

/// Checks that packets of one sender come out once, in order, with their gaps counted.
fn order(mut input: Input<'_>) {
    let mut order = PacketOrder::default();
    let (mut sequence, mut now) = (input.u16(), 0_u64);
    let (mut pushed, mut polled, mut next) = (0_u64, 0_u64, None);
    while !input.is_empty() {
        let step = input.byte();
        sequence = sequence.wrapping_add(u16::from(step & 15)).wrapping_sub(u16::from(step >> 4));
        now += u64::from(input.byte()) * 1_000_000;
        let payload = sequence.to_be_bytes().to_vec();
        let time = u32::from(sequence);
        order.push(ArrivedPacket { sequence, time, ssrc: 1, marker: false, payload, arrived: now });
        pushed += 1;
        while let Some(packet) = order.poll(now) {
            let found = u16::from_be_bytes(packet.payload.try_into().unwrap());
            let lost = u16::try_from(packet.lost).unwrap();
            let counted = |next: u16| {
                let step = found.wrapping_sub(next).cast_signed();
                found.wrapping_sub(lost) == next || lost > 0 && !(-100..900).contains(&step)
            };
            assert!(next.is_none_or(counted), "gaps are counted, and a sender that begins anew");
            next = Some(found.wrapping_add(1));
            polled += 1;
        }
    }
    assert!(polled + order.discarded() <= pushed);
}
