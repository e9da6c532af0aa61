//! Seeds of requests and reports of players, and of units for them.

use crate::Seed;

/// Writes requests as bytes that arrive in parts: see `paceline_fuzz::player`.
fn parts(login: bool, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![u8::from(login)];
    for part in bytes.chunks(201) {
        // A length of 8 n + 1.
        out.push(25);
        out.extend_from_slice(part);
    }
    out
}

fn requests(lines: &[&str]) -> Vec<u8> {
    let request = |line: &&str| format!("{}\r\n\r\n", line.replace('|', "\r\n"));
    lines.iter().map(request).collect::<String>().into_bytes()
}

pub(crate) fn seeds() -> Vec<Seed> {
    let url = "rtsp://h:8554/robot/camera?max_hz=10&sound=robot/mic";
    let track = |number: u8| {
        format!("rtsp://h:8554/robot/camera/trackID={number}?max_hz=10&sound=robot/mic")
    };
    let [first, second] = [0, 1].map(track);
    let mut session = requests(&[
        "OPTIONS * RTSP/1.0|CSeq: 1|User-Agent: player",
        &format!("DESCRIBE {url} RTSP/1.0|CSeq: 2|Accept: application/sdp"),
        &format!("SETUP {first} RTSP/1.0|CSeq: 3|Transport: RTP/AVP/TCP;unicast;interleaved=0-1"),
        &format!(
            "SETUP {second} RTSP/1.0|CSeq: 4|Transport: RTP/AVP;unicast;client_port=5000-5001|Session: 7"
        ),
        &format!("PLAY {url} RTSP/1.0|CSeq: 5|Session: 7|Range: npt=0-"),
    ]);
    // A receiver report on channel 1.
    let report =
        [&[0x81, 201, 0, 7, 0, 0, 0, 1][..], &[0, 0, 0, 1, 64, 0, 0, 9], &[0; 16]].concat();
    session.extend_from_slice(&[b'$', 1, 0, 32]);
    session.extend_from_slice(&report);
    session.extend(requests(&[
        "GET_PARAMETER * RTSP/1.0|CSeq: 6|Session: 7",
        &format!("PAUSE {url} RTSP/1.0|CSeq: 7|Session: 7"),
        &format!("TEARDOWN {url} RTSP/1.0|CSeq: 8|Session: 7"),
    ]));
    let login = requests(&[
        &format!("DESCRIBE {url} RTSP/1.0|CSeq: 1"),
        &format!(
            "DESCRIBE {url} RTSP/1.0|CSeq: 2|Authorization: Digest username=\"user\", realm=\"Paceline\", nonce=\"{}\", uri=\"{url}\", response=\"{}\"",
            "01".repeat(16),
            "0".repeat(32)
        ),
    ]);
    let transport = "RTP/AVP;multicast,RTP/AVP/TCP;unicast;interleaved=0-1;mode=\"PLAY\",RTP/AVP;client_port=5000";
    let mut seeds = vec![
        ("player", "session".to_owned(), parts(false, &session)),
        ("player", "login".to_owned(), parts(true, &login)),
        ("player", "report".to_owned(), report),
        ("player", "transport".to_owned(), transport.as_bytes().to_vec()),
    ];
    let h264 = [
        &[0, 0, 0, 1, 0x67, 0x42, 0xc0, 0x1e, 0, 0, 1, 0x68, 0xce, 0, 0, 1, 0x65, 0x88][..],
        &[7; 300],
        &[0, 0, 1, 0x65, 0x08, 9],
    ]
    .concat();
    let h265 = [&[0, 0, 1, 0x40, 1, 9, 0, 0, 1, 0x42, 1, 8, 0, 0, 1, 0x26, 1, 0x88][..], &[7; 300]]
        .concat();
    let aac = [0xff, 0xf1, 0x4c, 0x80, 0x01, 0x3f, 0xfc, 1, 2];
    for (format, unit) in [h264.as_slice(), &h265, &jpeg(), &aac, &[1; 400], &[0xf8; 40], &[5; 160]]
        .into_iter()
        .enumerate()
    {
        let bytes = [&[u8::try_from(format).unwrap(), 4], unit].concat();
        seeds.push(("packetize", format!("unit-{format}"), bytes));
    }
    seeds
}

/// A small picture.
fn jpeg() -> Vec<u8> {
    let size = paceline_media::Size::new(16, 16).unwrap();
    let pixels = vec![90; 16 * 16 * 3];
    let picture =
        paceline_media::Picture::new(paceline_media::PixelFormat::Rgb8, size, &pixels).unwrap();
    paceline_media::jpeg::encode(&picture, 50).unwrap()
}
