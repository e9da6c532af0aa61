//! The transports that a player proposes (RFC 2326, 12.39).

use thiserror::Error;

/// Most proposals that are read.
const PROPOSALS_MAX: usize = 16;
/// Most parameters of a proposal that are read.
const PARAMETERS_MAX: usize = 32;
/// Longest part that an error repeats.
const SHOWN_MAX: usize = 80;

/// The transport of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlayerTransport {
    /// Packets and reports on two channels of the connection.
    Tcp {
        /// The channels of RTP and RTCP.
        channels: (u8, u8),
    },
    /// Packets and reports to two ports of the player's host.
    Udp {
        /// The ports of RTP and RTCP.
        ports: (u16, u16),
    },
}

/// The reason why no proposal is served.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TransportError {
    /// There is none.
    #[error(
        "the request has no Transport, must propose RTP/AVP/TCP;unicast;interleaved=0-1 or RTP/AVP;unicast;client_port=PORT-PORT"
    )]
    Missing,
    /// None is supported.
    #[error("{0} is not served: RTP/AVP over TCP (interleaved) and UDP (unicast) are")]
    Unsupported(String),
}

impl PlayerTransport {
    /// Returns the first proposal that is served. `free` is a pair of channels for proposals without.
    ///
    /// The player's host receives the packets, whatever `destination` a proposal names.
    ///
    /// ```
    /// use paceline_edge::PlayerTransport;
    ///
    /// let wanted = PlayerTransport::choose("RTP/AVP;multicast,RTP/AVP;unicast;client_port=5000-5001", (0, 1))?;
    /// assert_eq!(wanted, PlayerTransport::Udp { ports: (5_000, 5_001) });
    /// # Ok::<(), paceline_edge::TransportError>(())
    /// ```
    ///
    /// # Errors
    /// [`TransportError::Unsupported`] with the proposals.
    pub fn choose(header: &str, free: (u8, u8)) -> Result<Self, TransportError> {
        let mut proposals = header.split(',').take(PROPOSALS_MAX);
        let found = proposals.find_map(|proposal| Self::read(proposal, free));
        found.ok_or_else(|| {
            let plain = header.chars().filter(|c| c.is_ascii_graphic());
            TransportError::Unsupported(plain.take(SHOWN_MAX).collect())
        })
    }

    fn read(proposal: &str, free: (u8, u8)) -> Option<Self> {
        let mut parts = proposal.split(';').map(str::trim).take(PARAMETERS_MAX);
        let profile = parts.next()?.to_ascii_uppercase();
        let parameters: Vec<(&str, &str)> =
            parts.map(|part| part.split_once('=').unwrap_or((part, ""))).collect();
        let value = |name: &str| {
            let mut named = parameters.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
            named.next().map(|(_, value)| value.trim())
        };
        let mode = value("mode").map(|mode| mode.trim_matches('"'));
        if value("multicast").is_some()
            || mode.is_some_and(|mode| !mode.eq_ignore_ascii_case("play"))
        {
            return None;
        }
        match profile.as_str() {
            "RTP/AVP/TCP" => {
                let channels = match value("interleaved") {
                    Some(pair) => two(pair)?,
                    None => free,
                };
                Some(Self::Tcp { channels })
            }
            "RTP/AVP" | "RTP/AVP/UDP" => {
                let ports: (u16, u16) = two(value("client_port")?)?;
                (ports.0 != 0 && ports.1 != 0).then_some(Self::Udp { ports })
            }
            _ => None,
        }
    }

    /// Returns the value of the header in the answer.
    pub(super) fn answer(self, ssrc: u32, server_ports: (u16, u16)) -> String {
        match self {
            Self::Tcp { channels: (first, second) } => {
                format!("RTP/AVP/TCP;unicast;interleaved={first}-{second};ssrc={ssrc:08X}")
            }
            Self::Udp { ports: (first, second) } => format!(
                "RTP/AVP;unicast;client_port={first}-{second};server_port={}-{};ssrc={ssrc:08X}",
                server_ports.0, server_ports.1
            ),
        }
    }
}

/// Reads two different numbers, or one, which the next number follows.
fn two<T>(pair: &str) -> Option<(T, T)>
where
    T: std::str::FromStr + Copy + PartialEq + TryFrom<u32> + Into<u32>,
{
    let (first, second) = match pair.split_once('-') {
        Some((first, second)) => (first.trim().parse().ok()?, second.trim().parse().ok()?),
        None => {
            let first: T = pair.trim().parse().ok()?;
            (first, T::try_from(first.into() + 1).ok()?)
        }
    };
    (first != second).then_some((first, second))
}
