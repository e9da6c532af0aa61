//! Fuzz bodies for players: their requests and reports, and the packets that they receive.

use crate::input::Input;
use paceline_edge::{
    Challenge, Depacketizer, Login, Packetizer, PictureClock, PlayerMessage, PlayerReader,
    PlayerReport, PlayerRequest, PlayerSession, PlayerStep, PlayerTarget, PlayerTransport,
    RtpEvent, RtpPacket, SetUpTrack, SoundClock, TRACKS_MAX, TrackFormat,
};
use paceline_media::codec::Codec;

/// The longest answer: reasons have at most 400 characters, and an address is in a request of at most 16 KiB.
const ANSWER_BYTES_MAX: usize = 100_000;

/// Reads the bytes as the requests of a player, as a report, and as an address. Each request has one answer with its status, and
/// the state of the session permits it.
pub fn player(data: &[u8]) {
    if let Ok(report) = PlayerReport::parse(data) {
        assert!(report.receptions.len() <= 31, "{report:?}");
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = PlayerTransport::choose(text, (0, 1)).map_err(|error| {
            assert!(error.to_string().len() < 400, "an error is one line");
        });
    }
    let mut input = Input::new(data);
    let login: Option<Login> = input.flag().then(|| "user:pass".parse().unwrap());
    let challenge = login.map(|login| Challenge::new(login, [1; 16]));
    let needs_login = challenge.is_some();
    let mut session = PlayerSession::new("7".to_owned(), challenge);
    let mut reader = PlayerReader::default();
    // The bytes arrive in parts.
    while !input.is_empty() {
        let length = usize::from(input.byte()) * 8 + 1;
        reader.push(input.take(length));
        loop {
            match reader.poll() {
                Ok(Some(PlayerMessage::Request(request))) => {
                    answer(&mut session, &request, needs_login)
                }
                Ok(Some(PlayerMessage::Packet { bytes, .. })) => drop(PlayerReport::parse(&bytes)),
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

fn answer(session: &mut PlayerSession, request: &PlayerRequest, needs_login: bool) {
    let tracks = session.tracks();
    let answer = match session.take(request) {
        PlayerStep::Answer(answer)
        | PlayerStep::Close(answer)
        | PlayerStep::Pause(answer)
        | PlayerStep::End(answer) => answer,
        PlayerStep::Describe(target) => {
            assert!(!needs_login, "no login was given");
            check(&target);
            session.described(&target, b"v=0\r\n".to_vec())
        }
        PlayerStep::SetUp { target, track, transport } => {
            assert!(!needs_login && track < TRACKS_MAX && session.track(track).is_none());
            check(&target);
            let answer = session.set_up(target, (track, SetUpTrack { transport, ssrc: 1 }), (2, 3));
            assert_eq!(session.tracks(), tracks + 1);
            answer
        }
        PlayerStep::Play => {
            assert!(!needs_login && tracks > 0, "nothing is set up");
            session.playing(&[(0, 1, None)])
        }
    };
    let bytes = answer.to_bytes(Some(request));
    assert!(bytes.starts_with(b"RTSP/1.0 ") && bytes.len() < ANSWER_BYTES_MAX, "{}", bytes.len());
    let head = bytes.windows(4).position(|part| part == b"\r\n\r\n").unwrap();
    let lines = bytes[..head].split(|byte| *byte == b'\n');
    assert!(lines.clone().count() <= 10, "no header adds another one");
    assert!(session.tracks() <= usize::from(TRACKS_MAX));
}

/// Checks that the address of each track leads to the same samples.
fn check(target: &PlayerTarget) {
    for track in 0..target.tracks() {
        let again = PlayerTarget::parse(&target.track_url(track).parse().unwrap()).unwrap();
        assert_eq!(
            (again.track, &again.tag, &again.query, &again.sound),
            (Some(track), &target.tag, &target.query, &target.sound)
        );
    }
}

/// The formats of units.
const FORMATS: [TrackFormat; 7] = [
    TrackFormat::H264,
    TrackFormat::H265,
    TrackFormat::Jpeg,
    TrackFormat::Aac { rate: 48_000, channels: 2 },
    TrackFormat::L16 { rate: 44_100, channels: 2 },
    TrackFormat::Opus { channels: 2 },
    TrackFormat::Pcmu { rate: 8_000, channels: 1 },
];

/// Reads the bytes as a unit, which is cut into packets that arrive as whole units again, or refused; and as times.
pub fn packetize(data: &[u8]) {
    let mut input = Input::new(data);
    let format = input.one_of(&FORMATS);
    let most = 64 + usize::from(input.byte()) * 8;
    let unit = input.take(usize::MAX);
    if let Ok(parts) = Packetizer::with_payload_max(format, most).cut(unit) {
        let bytes: usize = parts.iter().map(|part| part.payload.len()).sum();
        assert!(!parts.is_empty() && bytes <= unit.len() * 4 + 256 * parts.len());
        let whole = matches!(format, TrackFormat::Opus { .. });
        assert!(whole || parts.iter().all(|part| part.payload.len() <= most.max(200)));
        let (mut depacketizer, mut events) = (Depacketizer::new(format), Vec::new());
        for part in &parts {
            let (time, marker) = (i64::from(part.after), part.marker);
            depacketizer
                .push(&RtpPacket { time, marker, lost: 0, payload: &part.payload }, &mut events);
        }
        let received = |event: &RtpEvent| matches!(event, RtpEvent::Unit { .. });
        let sound = !matches!(format, TrackFormat::H264 | TrackFormat::H265 | TrackFormat::Jpeg);
        assert!(!sound || events.iter().all(received), "{events:?}");
    }
    let _ = format.duration(unit);
    let _ = format.fmtp(Some(unit));
    times(Input::new(data));
}

fn times(mut input: Input<'_>) {
    let mut long = move || (0..4).fold(0_u64, |all, _| all << 16 | u64::from(input.u16())) as i64;
    let (mut pictures, mut sound) = (PictureClock::new(None, Codec::H264), SoundClock::new(8_000));
    for number in 0..16 {
        let (captured, order) = (long() >> 4, long() >> 40);
        pictures.take(captured, (order % 7 != 0).then_some(order), number == 0);
        sound.take(captured, 160, order % 3 == 0);
    }
}
