//! Seeds of offers of browsers, and of their checks.

use crate::{Seed, with_cuts};

/// An offer as that of a browser, shortened.
const OFFER: &str = "v=0\r\no=- 4611731400430051336 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\na=msid-semantic: WMS\r\n\
m=video 9 UDP/TLS/RTP/SAVPF 102 103\r\nc=IN IP4 0.0.0.0\r\na=rtcp:9 IN IP4 0.0.0.0\r\na=candidate:1 1 udp 2122260223 10.0.0.1 5000 typ host\r\n\
a=ice-ufrag:abcd\r\na=ice-pwd:0123456789abcdefghijklmn\r\na=ice-options:trickle\r\n\
a=fingerprint:sha-256 00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13:14:15:16:17:18:19:1A:1B:1C:1D:1E:1F\r\n\
a=setup:actpass\r\na=mid:0\r\na=recvonly\r\na=rtcp-mux\r\na=rtcp-rsize\r\na=rtpmap:102 H264/90000\r\na=rtcp-fb:102 transport-cc\r\n\
a=rtcp-fb:102 nack\r\na=rtcp-fb:102 nack pli\r\na=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f\r\n\
a=rtpmap:103 rtx/90000\r\na=fmtp:103 apt=102\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\n\
a=ice-ufrag:abcd\r\na=ice-pwd:0123456789abcdefghijklmn\r\n\
a=fingerprint:sha-256 00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13:14:15:16:17:18:19:1A:1B:1C:1D:1E:1F\r\n\
a=setup:actpass\r\na=mid:1\r\na=sctp-port:5000\r\n";

/// The seeds.
pub(crate) fn seeds() -> Vec<Seed> {
    let mut check = vec![0, 1, 0, 20, 0x21, 0x12, 0xa4, 0x42];
    check.extend([7; 12]);
    // A priority, and a user name of 7 bytes that is padded.
    check.extend([0, 0x24, 0, 4, 1, 2, 3, 4, 0, 6, 0, 7]);
    check.extend(b"ab:cdef\0");
    let mut seeds = with_cuts("webrtc", "offer", OFFER.as_bytes());
    seeds.extend(with_cuts("webrtc", "check", &check));
    seeds
}
