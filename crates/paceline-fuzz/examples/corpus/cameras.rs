//! Seeds of RTP packets of a camera, of its address and its times.

use crate::Seed;

/// The first byte selects the format: see `paceline_fuzz::rtp`.
const H264: u8 = 0;
const H265: u8 = 1;
const JPEG: u8 = 2;
const AAC: u8 = 3;

/// Writes a packet: its marker, a step of the time by more than 3 units, packets that are lost before it, and the payload.
fn packet(marker: bool, step: Option<u8>, lost: Option<u8>, payload: &[u8]) -> Vec<u8> {
    // Lengths are even.
    let length = u8::try_from(payload.len().div_ceil(2)).unwrap();
    let flags = u8::from(marker)
        | u8::from(step.is_some()) << 1
        | u8::from(lost.is_some()) << 2
        | length << 3;
    let mut out = vec![flags];
    out.extend(step.map(|step| step + 3));
    // One byte is read for each packet, lost or not.
    out.push(lost.unwrap_or(0));
    out.extend_from_slice(payload);
    out.extend((payload.len() % 2 == 1).then_some(0));
    out
}

fn track(format: u8, packets: &[Vec<u8>]) -> Vec<u8> {
    [&[format, 9][..], &packets.concat()].concat()
}

fn h264(lost: Option<u8>) -> Vec<u8> {
    // An SPS of 320 x 240 pixels and a PPS, of x264, and slices of a key picture and of another one.
    let sps = [
        0x67, 0x64, 0x00, 0x0d, 0xac, 0xb2, 0x02, 0x83, 0xf6, 0x02, 0x20, 0x00, 0x00, 0x03, 0x00,
        0x20, 0x00, 0x00, 0x06, 0x41, 0xe2, 0x85, 0x49,
    ];
    let pps = [0x68, 0xeb, 0xc3, 0xcb, 0x22, 0xc0];
    let sets = [&[0x78, 0, 23][..], &sps, &[0, 6], &pps].concat();
    track(
        H264,
        &[
            packet(false, None, None, &sets),
            packet(false, None, None, &[0x7c, 0x85, 0x88, 0x84, 1, 2]),
            packet(true, None, lost, &[0x7c, 0x45, 3, 4]),
            packet(true, Some(9), None, &[0x41, 0x9a, 0x02, 0x03]),
            packet(true, Some(9), lost, &[0x41, 0x9a, 0x04, 0x05]),
        ],
    )
}

pub(crate) fn seeds() -> Vec<Seed> {
    let h265 = track(
        H265,
        &[
            packet(false, None, None, &[0x60, 1, 0, 4, 0x40, 1, 12, 1, 0, 4, 0x44, 1, 0xc1, 0x72]),
            packet(false, None, None, &[0x62, 1, 0x93, 0x80, 1, 2]),
            packet(true, None, None, &[0x62, 1, 0x53, 3, 4, 5]),
        ],
    );
    let jpeg = track(
        JPEG,
        &[
            packet(false, None, None, &[0, 0, 0, 0, 1, 80, 2, 1, 1, 2, 3, 4]),
            packet(true, None, None, &[0, 0, 0, 4, 1, 80, 2, 1, 5, 6, 0xff, 0xd9]),
        ],
    );
    let aac = track(
        AAC,
        &[
            packet(true, None, None, &[0, 32, 0, 24, 0, 16, 1, 2, 3, 4, 5]),
            packet(false, Some(9), None, &[0, 16, 0, 40, 1, 2, 3, 4]),
            packet(true, None, None, &[0, 16, 0, 40, 5]),
        ],
    );
    let mut seeds: Vec<Seed> = vec![
        ("rtp", "h264".to_owned(), h264(None)),
        ("rtp", "h264-lost".to_owned(), h264(Some(3))),
        ("rtp", "h265".to_owned(), h265),
        ("rtp", "jpeg".to_owned(), jpeg),
        ("rtp", "aac".to_owned(), aac),
    ];
    for format in 4..8 {
        let name = format!("sound-{format}");
        seeds.push(("rtp", name, track(format, &[packet(true, Some(160), None, &[0xff; 20])])));
    }
    for (name, text) in [
        ("address", "rtsp://192.168.1.20:554/cam/realmonitor?channel=1&subtype=0"),
        ("address-of-a-host", "rtsp://[::1]/user=admin_password=x_channel=1.sdp"),
        ("address-with-login", "rtsp://admin:password@camera/stream"),
        ("login", "admin:pass:word"),
        (
            "description",
            "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 239.1.2.3/16\r\nt=0 0\r\nm=video 5000 RTP/AVP 96\r\n\
            a=rtpmap:96 H264/90000\r\na=framerate:25\r\na=fmtp:96 sprop-parameter-sets=Z0LA,aM4=\r\nm=audio 5002 RTP/AVP 0\r\n",
        ),
    ] {
        seeds.push(("camera", name.to_owned(), text.as_bytes().to_vec()));
    }
    // A report and pictures of two tracks.
    let times =
        (0..12_u8).flat_map(|number| [[number % 2, number % 3], [number; 2], [7, number]].concat());
    seeds.push(("camera", "times".to_owned(), times.cycle().take(400).collect()));
    seeds
}
