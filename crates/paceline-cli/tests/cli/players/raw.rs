//! A player that reads only when it should.

use paceline_edge::{Depacketizer, RtpEvent, RtpPacket, TrackFormat};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// A session over TCP with a small receive buffer, which plays.
pub(super) struct RawPlayer(TcpStream);

impl RawPlayer {
    pub(super) fn open(url: &str) -> Self {
        let address = url.trim_start_matches("rtsp://").split('/').next().unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut player = Self(stream);
        player.ask(&format!("DESCRIBE {url}"), "");
        player.ask(&format!("SETUP {url}"), "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n");
        player.ask(&format!("PLAY {url}"), "");
        player
    }

    /// Sends a request, and reads the answer.
    fn ask(&mut self, line: &str, headers: &str) {
        let text = format!("{line} RTSP/1.0\r\nCSeq: 1\r\n{headers}\r\n");
        self.0.write_all(text.as_bytes()).unwrap();
        let mut answer = vec![self.byte()];
        // Packets that were sent before the answer.
        while answer == *b"$" {
            let mut head = [0; 3];
            self.0.read_exact(&mut head).unwrap();
            let mut packet = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]]))];
            self.0.read_exact(&mut packet).unwrap();
            answer = vec![self.byte()];
        }
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(self.byte());
        }
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("RTSP/1.0 200 OK"), "{line}: {answer}");
        let length = answer.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap())];
        self.0.read_exact(&mut body).unwrap();
    }

    fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.0.read_exact(&mut byte).unwrap();
        byte[0]
    }

    /// Reads the next packet of RTP.
    fn packet(&mut self) -> Vec<u8> {
        loop {
            let mut head = [0; 4];
            self.0.read_exact(&mut head).unwrap();
            assert_eq!(head[0], b'$', "{head:?}");
            let mut packet = vec![0; usize::from(u16::from_be_bytes([head[2], head[3]]))];
            self.0.read_exact(&mut packet).unwrap();
            if head[1] == 0 {
                return packet;
            }
        }
    }

    /// Sends BYE, and ends the session after `pause`, as GStreamer does.
    pub(super) fn leave(mut self, url: &str, pause: Duration) {
        // An empty report and BYE of one source.
        let bye = [0x80, 201, 0, 1, 0, 0, 0, 7, 0x81, 203, 0, 1, 0, 0, 0, 7];
        self.send(&[&[b'$', 1, 0, 16][..], &bye].concat());
        std::thread::sleep(pause);
        self.ask(&format!("PAUSE {url}"), "");
        self.ask(&format!("TEARDOWN {url}"), "");
    }

    /// Sends bytes.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// Reads up to the end of the connection. Returns true if the last packet ends with BYE.
    pub(super) fn goodbye(&mut self) -> bool {
        let mut bytes = Vec::new();
        let _ = self.0.read_to_end(&mut bytes);
        let end = bytes.len().saturating_sub(8);
        bytes.get(end..end + 2) == Some(&[0x81, 203])
    }

    /// Reads packets.
    pub(super) fn packets(&mut self, count: usize) {
        (0..count).for_each(|_| drop(self.packet()));
    }

    /// Reads whole pictures of H.264. Sequence numbers have no gap: a picture that is left out has none.
    pub(super) fn pictures(&mut self, count: usize) -> Vec<u8> {
        let mut depacketizer = Depacketizer::new(TrackFormat::H264);
        let (mut events, mut next) = (Vec::new(), None);
        while events.len() < count {
            let packet = self.packet();
            let sequence = u16::from_be_bytes([packet[2], packet[3]]);
            assert!(next.is_none_or(|next| next == sequence), "{next:?} {sequence}");
            next = Some(sequence.wrapping_add(1));
            let time = u32::from_be_bytes([packet[4], packet[5], packet[6], packet[7]]);
            let (time, marker) = (i64::from(time), packet[1] & 0x80 != 0);
            let packet = RtpPacket { time, marker, lost: 0, payload: &packet[12..] };
            depacketizer.push(&packet, &mut events);
        }
        let bytes = events.into_iter().map(|event| match event {
            RtpEvent::Unit { bytes, .. } => bytes,
            RtpEvent::Fault(fault) => panic!("{fault:?}"),
        });
        bytes.collect::<Vec<_>>().concat()
    }
}

/// Sends bytes, and returns the answer.
pub(super) fn exchange(url: &str, bytes: &[u8]) -> String {
    let address = url.trim_start_matches("rtsp://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = vec![0; 16];
    stream.read_exact(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}
