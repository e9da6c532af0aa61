//! Dialogues of players with a session.

use super::*;
use crate::address::Login;
use crate::sdp::RtpTrack;
use crate::track::TrackFormat;
use proptest::prelude::*;

const URL: &str = "rtsp://127.0.0.1:8554/robot/camera?max_hz=10";

/// Returns the requests in a text.
fn requests(text: &str) -> Vec<PlayerRequest> {
    let mut reader = PlayerReader::default();
    reader.push(text.replace('\n', "\r\n").as_bytes());
    let next = std::iter::from_fn(|| reader.poll().unwrap());
    let request = |message| match message {
        PlayerMessage::Request(request) => *request,
        PlayerMessage::Packet { .. } => panic!("a packet"),
    };
    next.map(request).collect()
}

fn request(line: &str, headers: &str) -> PlayerRequest {
    requests(&format!("{line} RTSP/1.0\nCSeq: 3\n{headers}\n")).remove(0)
}

fn status(step: &PlayerStep) -> (PlayerStatus, String) {
    match step {
        PlayerStep::Answer(answer)
        | PlayerStep::Close(answer)
        | PlayerStep::Pause(answer)
        | PlayerStep::End(answer) => (answer.status(), answer.reason().to_owned()),
        PlayerStep::Describe(_) | PlayerStep::SetUp { .. } | PlayerStep::Play => panic!("{step:?}"),
    }
}

/// Sets up a track, and returns the answer.
fn set_up(session: &mut PlayerSession, url: &str, transport: &str) -> String {
    let request = request(&format!("SETUP {url}"), &format!("Transport: {transport}\n"));
    let PlayerStep::SetUp { target, track, transport } = session.take(&request) else {
        panic!("not set up")
    };
    let answer =
        session.set_up(target, (track, SetUpTrack { transport, ssrc: 0xabc }), (6_000, 6_001));
    String::from_utf8(answer.to_bytes(Some(&request))).unwrap()
}

#[test]
fn a_player_describes_sets_up_plays_and_leaves() {
    let mut session = PlayerSession::new("5e55".to_owned(), None);
    let PlayerStep::Answer(answer) = session.take(&request("OPTIONS *", "")) else { panic!() };
    let text = String::from_utf8(answer.to_bytes(Some(&request("OPTIONS *", "")))).unwrap();
    assert!(text.starts_with("RTSP/1.0 200 OK\r\n") && text.contains("CSeq: 3\r\n"), "{text}");
    assert!(text.contains("Public: OPTIONS, DESCRIBE, SETUP"), "{text}");
    let step = session.take(&request(&format!("DESCRIBE {URL}"), "Accept: application/sdp\n"));
    let PlayerStep::Describe(target) = step else { panic!("{step:?}") };
    let track = DescribedSamples { format: TrackFormat::H264, key: None, hz: Some(29.97) };
    let sdp = describe(&target, &[track], ("127.0.0.1".parse().unwrap(), 7));
    let text = String::from_utf8(sdp).unwrap();
    let control = "a=control:rtsp://127.0.0.1:8554/robot/camera/trackID=0?max_hz=10\r\n";
    assert!(text.contains(control) && text.contains("a=framerate:29.97\r\n"), "{text}");
    let described = session.described(&target, text.clone().into_bytes());
    let described = String::from_utf8(described.to_bytes(None)).unwrap();
    assert!(described.contains(&format!("Content-Base: {URL}\r\n")), "{described}");
    // What the receiving side of this crate reads, once the description has a port.
    let tracks = RtpTrack::parse(text.replace("video 0 ", "video 5000 ").as_bytes()).unwrap();
    assert_eq!((tracks[0].encoding.as_str(), tracks[0].payload_type), ("H264", 96));

    let url = target.track_url(0);
    let text = set_up(&mut session, &url, "RTP/AVP/TCP;unicast;interleaved=2-3");
    assert!(text.contains("Session: 5e55;timeout=60\r\n"), "{text}");
    assert!(
        text.contains("Transport: RTP/AVP/TCP;unicast;interleaved=2-3;ssrc=00000ABC\r\n"),
        "{text}"
    );
    assert_eq!(
        session.take(&request(&format!("PLAY {URL}"), "Session: 5e55\nRange: npt=0-\n")),
        PlayerStep::Play
    );
    let answer = session.playing(&[(0, 7, Some(9))]);
    let text = String::from_utf8(answer.to_bytes(None)).unwrap();
    assert!(text.contains(&format!("RTP-Info: url={url};seq=7;rtptime=9\r\n")), "{text}");
    let step = session.take(&request("GET_PARAMETER *", "Session: 5e55\n"));
    assert_eq!(status(&step).0, PlayerStatus::Ok);
    assert!(matches!(session.take(&request(&format!("PAUSE {URL}"), "")), PlayerStep::Pause(_)));
    assert!(matches!(session.take(&request(&format!("TEARDOWN {URL}"), "")), PlayerStep::End(_)));
}

#[test]
fn requests_that_are_not_possible_have_their_status() {
    let mut session = PlayerSession::new("5e55".to_owned(), None);
    let mut refused = |line: &str, headers: &str| status(&session.take(&request(line, headers)));
    assert_eq!(refused(&format!("PLAY {URL}"), "").0, PlayerStatus::NotValidInThisState);
    assert_eq!(refused(&format!("PLAY {URL}"), "Session: 5e55\n").0, PlayerStatus::SessionNotFound);
    assert_eq!(refused("DESCRIBE rtsp://h/", "").0, PlayerStatus::BadRequest);
    assert_eq!(refused("DESCRIBE *", "").0, PlayerStatus::BadRequest);
    assert_eq!(refused(&format!("ANNOUNCE {URL}"), "").0, PlayerStatus::MethodNotAllowed);
    assert_eq!(
        refused(&format!("DESCRIBE {URL}"), "Require: x.y\n").0,
        PlayerStatus::OptionNotSupported
    );
    let login = refused("DESCRIBE rtsp://a:s3cret@h/x", "");
    assert!(login.0 == PlayerStatus::BadRequest && !login.1.contains("s3cret"), "{login:?}");
    for transport in
        ["", "Transport: RTP/SAVP;unicast;client_port=4-5\n", "Transport: RTP/AVP;multicast\n"]
    {
        assert_eq!(
            refused(&format!("SETUP {URL}"), transport).0,
            PlayerStatus::UnsupportedTransport
        );
    }
    let sound = format!("{URL}&sound=robot/mic");
    let tcp = "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\n";
    assert_eq!(refused(&format!("SETUP {sound}"), tcp).0, PlayerStatus::AggregateNotAllowed);
    let text = "OPTIONS * RTSP/2.0\nCSeq: 1\n\nOPTIONS * RTSP/1.0\n\n";
    let [other, without] = &requests(text)[..] else { panic!("two") };
    assert_eq!(status(&session.take(other)).0, PlayerStatus::VersionNotSupported);
    assert_eq!(status(&session.take(without)).0, PlayerStatus::BadRequest);

    set_up(&mut session, URL, "RTP/AVP/TCP;unicast;interleaved=0-1");
    let mut refused = |line: &str, headers: &str| status(&session.take(&request(line, headers))).0;
    assert_eq!(refused(&format!("SETUP {URL}"), tcp), PlayerStatus::NotValidInThisState);
    assert_eq!(
        refused("SETUP rtsp://127.0.0.1:8554/other", tcp),
        PlayerStatus::AggregateNotAllowed
    );
    assert_eq!(refused(&format!("PLAY {URL}"), "Session: other\n"), PlayerStatus::SessionNotFound);
    let body = "SET_PARAMETER * RTSP/1.0\nCSeq: 3\nContent-Length: 4\n\na: b";
    assert_eq!(status(&session.take(&requests(body)[0])).0, PlayerStatus::ParameterNotUnderstood);
}

#[test]
fn two_tracks_need_different_channels() {
    let mut session = PlayerSession::new("1".to_owned(), None);
    let url = |track| format!("rtsp://h/cam/trackID={track}?sound=mic");
    set_up(&mut session, &url(0), "RTP/AVP/TCP;unicast;interleaved=0-1");
    let same = request(&format!("SETUP {}", url(1)), "Transport: RTP/AVP/TCP;interleaved=1-2\n");
    assert_eq!(status(&session.take(&same)).0, PlayerStatus::UnsupportedTransport);
    let text = set_up(&mut session, &url(1), "RTP/AVP;unicast;client_port=5000-5001");
    assert!(text.contains("client_port=5000-5001;server_port=6000-6001"), "{text}");
    assert_eq!(session.tracks(), 2);
}

#[test]
fn addresses_name_a_tag_its_options_and_a_track() {
    let target = |text: &str| PlayerTarget::parse(&text.parse().unwrap());
    let both =
        target("rtsp://h/robot/c%61m?size=320x240&within=200ms&audio=8000x1&sound=robot%2Fmic")
            .unwrap();
    assert_eq!(
        (both.tag.as_str(), both.query.as_str()),
        ("robot/cam", "size=320x240&within=200ms")
    );
    let sound = ("robot/mic".to_owned(), "within=200ms&audio=8000x1".to_owned());
    assert_eq!((both.sound.as_ref(), both.tracks()), (Some(&sound), 2));
    // As players put the address of a track together.
    for text in [
        "rtsp://h/cam/trackID=1?a=b&sound=x",
        "rtsp://h/cam?a=b&sound=x/trackID=1",
        "rtsp://h/cam?a=b&sound=x/trackID=1/",
    ] {
        let found = target(text).unwrap();
        assert_eq!((found.track, found.url()), (Some(1), "rtsp://h/cam?a=b&sound=x"), "{text}");
    }
    assert_eq!(target("rtsp://h/cam/trackID=9"), Err(TargetError::Track));
    assert_eq!(target("rtsp://h/cam/trackID=-1"), Err(TargetError::Track));
    assert_eq!(target("rtsp://h//"), Err(TargetError::NoTag));
    assert_eq!(target("rtsp://h/%ff"), Err(TargetError::Text("path")));
    assert_eq!(target("rtsp://user@h/cam").unwrap().url(), "rtsp://h/cam");
    let offer = target(URL).unwrap().with_flags("--size 160x120 --max-hz 2.5");
    assert_eq!(offer, "rtsp://127.0.0.1:8554/robot/camera?size=160x120&max_hz=2.5");
}

#[test]
fn a_login_is_checked_without_the_password() {
    let login: Login = "admin:s3cret".parse().unwrap();
    let challenge = Challenge::new(login, [7; 16]);
    let nonce = "07".repeat(16);
    let session = || PlayerSession::new("1".to_owned(), Some(challenge.clone()));
    let line = format!("DESCRIBE {URL}");
    let asked = session().take(&request(&line, ""));
    let PlayerStep::Answer(answer) = &asked else { panic!("{asked:?}") };
    let text = String::from_utf8(answer.to_bytes(None)).unwrap();
    assert!(text.starts_with("RTSP/1.0 401 Unauthorized"), "{text}");
    assert!(text.contains(&format!("Digest realm=\"Paceline\", nonce=\"{nonce}\"")), "{text}");
    // Calculated with md5sum: of admin:Paceline:s3cret, of DESCRIBE:URL, and of both with the nonce between them.
    let right = "ec8c08c3c54395fd1b51055d274ea147";
    let header = |nonce: &str, response: &str| {
        format!(
            "Authorization: Digest username=\"admin\", realm=\"Paceline\", nonce=\"{nonce}\", uri=\"{URL}\", response=\"{response}\"\n"
        )
    };
    let take = |headers: &str| session().take(&request(&line, headers));
    assert!(
        matches!(take(&header(&nonce, right)), PlayerStep::Describe(_)),
        "{:?}",
        take(&header(&nonce, right))
    );
    assert_eq!(status(&take(&header("other", right))).1, "a login is needed");
    assert_eq!(
        status(&take("Authorization: Basic YWRtaW46czNjcmV0\n")).1,
        "the name or the password is wrong"
    );
    let mut session = session();
    let wrong = request(&line, &header(&nonce, &"0".repeat(32)));
    assert!(matches!(session.take(&wrong), PlayerStep::Answer(_)));
    assert!(matches!(session.take(&wrong), PlayerStep::Answer(_)));
    assert!(matches!(session.take(&wrong), PlayerStep::Close(_)));
    assert!(!format!("{session:?}").contains("s3cret"));
}

#[test]
fn requests_are_bounded_and_may_arrive_in_parts() {
    let text = format!(
        "OPTIONS {URL} RTSP/1.0\r\nCSeq: 1\r\nContent-Length: 3\r\n\r\nabc$\x00\x00\x01x\r\n"
    );
    let mut reader = PlayerReader::default();
    let mut found = Vec::new();
    for byte in text.bytes() {
        reader.push(&[byte]);
        found.extend(reader.poll().unwrap());
    }
    assert!(matches!(
        &found[..],
        [PlayerMessage::Request(_), PlayerMessage::Packet { channel: 0, .. }]
    ));
    assert!(reader.poll() == Ok(None) && !reader.is_partial());
    let long = |text: &str| {
        let mut reader = PlayerReader::default();
        reader.push(text.as_bytes());
        reader.poll()
    };
    assert_eq!(long(&"x".repeat(17_000)), Err(RtspError::Long));
    assert_eq!(
        long("OPTIONS * RTSP/1.0\r\nContent-Length: 99999999999\r\n\r\n"),
        Err(RtspError::Long)
    );
    assert_eq!(long("GET / HTTP/1.1\r\n\r\n"), Err(RtspError::Syntax));
    assert_eq!(long("RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n"), Err(RtspError::Syntax));
}

proptest! {
    #[test]
    fn any_requests_are_answered(
        lines in proptest::collection::vec(("(OPTIONS|DESCRIBE|SETUP|PLAY|PAUSE|TEARDOWN|GET_PARAMETER|RECORD)", "[ -~]{0,40}", "[ -~]{0,60}"), 1..8),
    ) {
        let mut session = PlayerSession::new("1".to_owned(), None);
        for (method, url, header) in lines {
            let mut reader = PlayerReader::default();
            let url = url.replace(' ', "");
            reader.push(format!("{method} rtsp://h/{url} RTSP/1.0\r\nCSeq: 1\r\nTransport: {header}\r\n\r\n").as_bytes());
            let Ok(Some(PlayerMessage::Request(request))) = reader.poll() else { continue };
            match session.take(&request) {
                PlayerStep::SetUp { target, track, transport } => {
                    let answer = session.set_up(target, (track, SetUpTrack { transport, ssrc: 1 }), (2, 3));
                    let text = String::from_utf8(answer.to_bytes(Some(&request))).unwrap();
                    prop_assert!(text.contains("Session: 1;timeout=60"), "{text}");
                }
                PlayerStep::Play => {
                    let _ = session.playing(&[(0, 1, None)]);
                }
                PlayerStep::Answer(answer) | PlayerStep::Close(answer) | PlayerStep::Pause(answer) | PlayerStep::End(answer) => {
                    let text = String::from_utf8(answer.to_bytes(Some(&request))).unwrap();
                    prop_assert!(text.starts_with("RTSP/1.0 ") && text.contains("\r\nCSeq: 1\r\n"), "{text}");
                }
                PlayerStep::Describe(target) => prop_assert!(!target.tag.is_empty()),
            }
        }
    }
}
