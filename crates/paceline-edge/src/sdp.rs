//! Session descriptions (RFC 8866) of RTP that arrives without RTSP.

use crate::fmtp::{AacConfig, Parameters};
use crate::track::DescribedTrack;
use sdp_types::{Media, Session};
use std::net::IpAddr;
use thiserror::Error;

/// Longest description in bytes.
pub const SDP_BYTES_MAX: usize = 64 * 1024;
/// Most tracks of a description.
const TRACKS_MAX: usize = 16;

/// A track of a description.
#[derive(Clone, Debug, PartialEq)]
pub struct RtpTrack {
    /// `video`, `audio` or another medium.
    pub medium: String,
    /// The encoding, such as `H264`.
    pub encoding: String,
    /// The RTP clock rate in Hz.
    pub rate: u32,
    /// The channels of sound.
    pub channels: Option<u16>,
    /// The payload type of its packets.
    pub payload_type: u8,
    /// The address to which the packets are sent: of this host, or of a multicast group.
    pub address: IpAddr,
    /// The port of RTP; RTCP has the next one.
    pub port: u16,
    /// The pictures per second, above 0.
    pub hz: Option<f64>,
    /// The parameter sets, without start codes.
    pub sets: Vec<Vec<u8>>,
    /// The encoding with the parameters that are not supported.
    refused: Option<String>,
    /// The configuration of AAC.
    aac: Option<AacConfig>,
}

/// The reason why a text is no description.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SdpError {
    /// It cannot be read.
    #[error(
        "it is no session description ({0}); give the SDP that the sender writes, such as ffmpeg -sdp_file camera.sdp"
    )]
    Syntax(String),
    /// It is too long.
    #[error("it has {0} bytes, a session description has at most {SDP_BYTES_MAX}")]
    Long(usize),
    /// A track has no address.
    #[error("line c= is missing or has no IP address, must be such as c=IN IP4 127.0.0.1")]
    Address,
    /// A track has an unsuitable port.
    #[error("port {0} in a line m= must be from 1 to 65534: RTCP has the next one")]
    Port(u16),
}

impl RtpTrack {
    /// Returns the track for [`crate::choose`].
    ///
    /// The rate and channels of AAC are those of its configuration. An encoding whose parameters are not supported is named with
    /// them, such as `MPEG4-GENERIC with mode=AAC-lbr (AAC-hbr is supported)`, and so cannot be chosen.
    #[must_use]
    pub fn described(&self) -> DescribedTrack<'_> {
        DescribedTrack {
            medium: &self.medium,
            encoding: self.refused.as_deref().unwrap_or(&self.encoding),
            rate: self.aac.map_or(self.rate, |aac| aac.rate),
            channels: self.aac.and_then(|aac| aac.channels).or(self.channels),
        }
    }

    /// Returns the tracks of a description that use RTP, at most 16. Other transports are left out.
    ///
    /// ```
    /// use paceline_edge::RtpTrack;
    ///
    /// let text = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 5004 RTP/AVP 0\r\n";
    /// let tracks = RtpTrack::parse(text.as_bytes())?;
    /// assert_eq!((tracks[0].encoding.as_str(), tracks[0].rate, tracks[0].port), ("PCMU", 8_000, 5_004));
    /// # Ok::<(), paceline_edge::SdpError>(())
    /// ```
    ///
    /// # Errors
    /// [`SdpError`], for a text that is no description, and for tracks without a suitable address or port.
    pub fn parse(text: &[u8]) -> Result<Vec<Self>, SdpError> {
        if text.len() > SDP_BYTES_MAX {
            return Err(SdpError::Long(text.len()));
        }
        // ffmpeg writes this line before the description.
        let text = text.strip_prefix(b"SDP:\n").unwrap_or(text);
        let session = Session::parse(text).map_err(|error| {
            SdpError::Syntax(
                error.to_string().chars().filter(|c| !c.is_control()).take(100).collect(),
            )
        })?;
        let rtp = session.medias.iter().filter(|media| media.proto.starts_with("RTP/AVP"));
        let tracks = rtp.take(TRACKS_MAX).filter_map(|media| track(&session, media));
        tracks.collect()
    }
}

fn track(session: &Session, media: &Media) -> Option<Result<RtpTrack, SdpError>> {
    // The first format is the preferred one.
    let payload_type: u8 = media.fmt.split_whitespace().next()?.parse().ok()?;
    let named = attribute(media, "rtpmap", payload_type).map(str::to_owned);
    let map = named.or_else(|| fixed(payload_type).map(str::to_owned))?;
    let mut parts = map.split('/');
    let (encoding, rate) = (parts.next()?.to_owned(), parts.next()?.trim().parse().ok()?);
    let channels = parts.next().and_then(|text| text.trim().parse().ok());
    let connection = media.connections.first().or(session.connection.as_ref());
    // A multicast address is followed by its time to live.
    let address = connection.and_then(|connection| connection.connection_address.split('/').next());
    let Some(address) = address.and_then(|text| text.parse().ok()) else {
        return Some(Err(SdpError::Address));
    };
    if matches!(media.port, 0 | u16::MAX) {
        return Some(Err(SdpError::Port(media.port)));
    }
    let rate_of = |value: &str| value.trim().parse().ok();
    let hz = media.attributes.iter().find(|line| line.attribute == "framerate");
    let hz = hz.and_then(|line| line.value.as_deref()).and_then(rate_of);
    let hz = hz.filter(|hz: &f64| hz.is_finite() && *hz > 0.0);
    let parameters = Parameters::parse(attribute(media, "fmtp", payload_type).unwrap_or_default());
    let (sets, checked) = (parameters.sets(), parameters.check(&encoding));
    let refused = checked.as_ref().err().map(|what| format!("{encoding} {what}"));
    let aac = checked.ok().flatten();
    let medium = media.media.clone();
    let port = media.port;
    Some(Ok(RtpTrack {
        medium,
        encoding,
        rate,
        channels,
        payload_type,
        address,
        port,
        hz,
        sets,
        refused,
        aac,
    }))
}

/// Returns the value of an attribute of a payload type.
fn attribute<'m>(media: &'m Media, name: &str, payload_type: u8) -> Option<&'m str> {
    let lines = media.attributes.iter().filter(|line| line.attribute.eq_ignore_ascii_case(name));
    lines
        .filter_map(|line| line.value.as_deref()?.trim().split_once(' '))
        .find_map(|(kind, value)| (kind.parse() == Ok(payload_type)).then_some(value.trim()))
}

/// Returns the encodings of the fixed payload types (RFC 3551, tables 4 and 5) that are published.
const fn fixed(payload_type: u8) -> Option<&'static str> {
    match payload_type {
        0 => Some("PCMU/8000"),
        8 => Some("PCMA/8000"),
        10 => Some("L16/44100/2"),
        11 => Some("L16/44100/1"),
        26 => Some("JPEG/90000"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::track::{TrackFormat, TrackKind, choose};

    const HEAD: &str =
        "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=No Name\r\nc=IN IP4 239.1.2.3/16\r\nt=0 0\r\n";

    fn parse(rest: &str) -> Result<Vec<RtpTrack>, SdpError> {
        RtpTrack::parse(format!("{HEAD}{rest}").as_bytes())
    }

    #[test]
    fn tracks_have_their_encoding_address_and_parameter_sets() {
        let text = "m=video 5000 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=framerate:25.0\r\n\
            a=fmtp:96 packetization-mode=1; sprop-parameter-sets=Z0LA,aM4=; profile-level-id=42C0\r\n\
            m=audio 5002 RTP/AVP 97\r\nc=IN IP6 ::1\r\na=rtpmap:97 opus/48000/2\r\nm=application 9 UDP x\r\n";
        let tracks = parse(text).unwrap();
        let [video, audio] = &tracks[..] else { panic!("{tracks:?}") };
        assert_eq!(
            (video.encoding.as_str(), video.rate, video.port, video.payload_type),
            ("H264", 90_000, 5_000, 96)
        );
        assert_eq!((video.hz, video.address.to_string()), (Some(25.0), "239.1.2.3".to_owned()));
        assert_eq!(video.sets, [vec![0x67, 0x42, 0xc0], vec![0x68, 0xce]]);
        assert_eq!((audio.channels, audio.address.to_string()), (Some(2), "::1".to_owned()));
    }

    #[test]
    fn rates_of_pictures_keep_their_fraction() {
        let hz = |value: &str| {
            let text = format!("m=video 5000 RTP/AVP 26\r\na=framerate:{value}\r\n");
            parse(&text).unwrap()[0].hz
        };
        assert_eq!((hz("29.97"), hz("12.5"), hz(" 25 ")), (Some(29.97), Some(12.5), Some(25.0)));
        for value in ["0", "-1", "NaN", "inf", "fast", ""] {
            assert_eq!(hz(value), None, "{value}");
        }
    }

    #[test]
    fn parameters_that_are_not_supported_are_refused_by_name() {
        let chosen = |format: &str, kind| {
            let map = match kind {
                TrackKind::Pictures => "m=video 5000 RTP/AVP 96\r\na=rtpmap:96 H265/90000",
                TrackKind::Sound => "m=audio 5000 RTP/AVP 96\r\na=rtpmap:96 mpeg4-generic/44100",
            };
            let tracks = parse(&format!("{map}\r\na=fmtp:96 {format}\r\n")).unwrap();
            let found = choose(&[tracks[0].described()], kind);
            found.map(|(_, format)| format).map_err(|error| error.to_string())
        };
        let sound = "streamtype=5; mode=AAC-hbr; config=1190; SizeLength=13; IndexLength=3; IndexDeltaLength=3";
        let aac = Ok(TrackFormat::Aac { rate: 48_000, channels: 2 });
        assert_eq!(chosen(sound, TrackKind::Sound), aac, "of the configuration");
        let error = chosen("mode=CELP-vbr", TrackKind::Sound).unwrap_err();
        let start = "its sound is MPEG4-GENERIC with mode=CELP-vbr (AAC-hbr is supported), must be";
        assert!(error.starts_with(start), "{error}");
        let error = chosen("mode=AAC-hbr;config=2b118800", TrackKind::Sound).unwrap_err();
        assert!(error.contains("of object type 5, which is HE-AAC (2, AAC-LC, is supported)"));
        assert_eq!(chosen("sprop-max-don-diff=0", TrackKind::Pictures), Ok(TrackFormat::H265));
        let error = chosen("sprop-max-don-diff=1", TrackKind::Pictures).unwrap_err();
        assert!(error.contains("H265 with sprop-max-don-diff=1 (0 is supported)"), "{error}");
        let long = chosen(&format!("mode={}", "x".repeat(9_000)), TrackKind::Sound).unwrap_err();
        assert!(long.len() < 300, "{long}");
    }

    #[test]
    fn errors_name_the_line_and_the_fix() {
        let error = |text: &[u8]| RtpTrack::parse(text).unwrap_err().to_string();
        assert!(error(b"hello").contains("no session description"), "{}", error(b"hello"));
        assert!(error(&vec![0; SDP_BYTES_MAX + 1]).contains("65537 bytes"));
        assert_eq!(parse("m=audio 65535 RTP/AVP 0\r\n"), Err(SdpError::Port(65_535)));
        assert_eq!(
            parse("m=audio 9 RTP/AVP 0\r\nc=IN IP4 host.example\r\n"),
            Err(SdpError::Address)
        );
        // An unknown payload type without a name is no track.
        assert_eq!(parse("m=audio 9 RTP/AVP 99\r\n"), Ok(Vec::new()));
    }
}
