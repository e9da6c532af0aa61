//! The description of a tag's samples for players (RFC 8866).

use super::target::PlayerTarget;
use crate::track::{TrackFormat, TrackKind};
use sdp_types::{Attribute, Connection, Media, MediaType, Origin, Session, Time, TransportProto};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A track of a description.
#[derive(Clone, Copy, Debug)]
pub struct DescribedSamples<'a> {
    /// The format.
    pub format: TrackFormat,
    /// A key picture with parameter sets, if one is known.
    pub key: Option<&'a [u8]>,
    /// The pictures per second, if the rate is declared.
    pub hz: Option<f64>,
}

/// Returns the description of the tracks at an address. `host` is the address of this host, and `id` a number of the description.
#[must_use]
pub fn describe(
    target: &PlayerTarget,
    tracks: &[DescribedSamples<'_>],
    (host, id): (IpAddr, u64),
) -> Vec<u8> {
    let any: IpAddr = match host {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let plain = |text: &str| text.chars().filter(|c| !c.is_control()).collect::<String>();
    let mut session = Session::new(Origin::with_ip_addr(id, 1, host), plain(&target.tag));
    session.connection = Some(Connection::from_ip_addr(any));
    session.times = vec![Time::new(0, 0)];
    session.attributes = vec![
        Attribute::with_value("control", target.url()),
        Attribute::with_value("range", "npt=now-"),
    ];
    session.medias =
        (0_u8..).zip(tracks).map(|(number, track)| medium(target, number, track)).collect();
    let mut bytes = Vec::new();
    // Memory takes everything.
    let written = session.write(&mut bytes);
    written.map(|()| bytes).unwrap_or_default()
}

fn medium(target: &PlayerTarget, number: u8, track: &DescribedSamples<'_>) -> Media {
    let format = track.format;
    let kind = match format.kind() {
        TrackKind::Pictures => MediaType::Video,
        TrackKind::Sound => MediaType::Audio,
    };
    let payload_type = format.payload_type(number);
    let mut media = Media::new(kind, 0, TransportProto::RtpAvp, payload_type);
    let mut add = |name: &str, value: String| {
        media.attributes.push(Attribute::with_value(name, value));
    };
    add("rtpmap", format!("{payload_type} {}", format.rtpmap()));
    if let Some(parameters) = format.fmtp(track.key) {
        add("fmtp", format!("{payload_type} {parameters}"));
    }
    if let Some(hz) = track.hz.filter(|hz| hz.is_finite() && *hz > 0.0) {
        add("framerate", format!("{}", (hz * 1_000.0).round() / 1_000.0));
    }
    add("control", target.track_url(number));
    media
}
