//! The session description that a peer offers, before it is accepted.

use str0m::change::SdpOffer;
use str0m::media::Mid;
use thiserror::Error;

/// Longest offer in bytes. Browsers send up to 12 kB.
pub const OFFER_BYTES_MAX: usize = 64 << 10;
/// Most media of an offer.
const MEDIA_MAX: usize = 8;
/// Longest reason of a parser in an error.
const REASON_MAX: usize = 160;

/// The reason why an offer is not accepted.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum OfferError {
    /// It is too long.
    #[error("the offer has {0} bytes; at most {OFFER_BYTES_MAX}")]
    Long(usize),
    /// It has too many media.
    #[error("the offer has {0} media (m= lines); at most {MEDIA_MAX}")]
    Media(usize),
    /// It is no session description of WebRTC.
    #[error("the offer is no session description of WebRTC: {0}")]
    Sdp(String),
    /// It has no medium for a track.
    #[error("the offer has no {0}; add a receiving {1} transceiver before createOffer()")]
    Missing(&'static str, &'static str),
    /// It has the medium without the codec.
    #[error("the offer has {kind}, but not {codec}; {fix}")]
    Codec {
        /// The kind of the medium.
        kind: &'static str,
        /// The codec of the samples.
        codec: &'static str,
        /// The remedy.
        fix: &'static str,
    },
    /// It sends nothing.
    #[error("the offer sends neither pictures nor sound; add a track before createOffer()")]
    NoTracks,
}

impl OfferError {
    pub(super) fn sdp(error: impl ToString) -> Self {
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        Self::Sdp(error.to_string().chars().map(plain).take(REASON_MAX).collect())
    }
}

/// An offer that was read.
///
/// Its candidates are left out: a server of ICE-lite learns the addresses of its peer from the checks of the peer, so a thousand
/// candidates cost nothing.
#[derive(Debug)]
pub struct WebrtcOffer {
    pub(super) sdp: SdpOffer,
    /// The peer reports the arrival of packets for congestion control.
    pub(super) has_feedback: bool,
    pub(super) has_video: bool,
    /// The identifiers of its media, in their order.
    pub(super) mids: Vec<Mid>,
}

impl WebrtcOffer {
    /// Reads an offer.
    ///
    /// # Errors
    /// [`OfferError`] for text that is too long or no session description.
    pub fn parse(text: &str) -> Result<Self, OfferError> {
        if text.len() > OFFER_BYTES_MAX {
            return Err(OfferError::Long(text.len()));
        }
        let mut kept = String::with_capacity(text.len());
        let mut mids = Vec::new();
        let (mut media, mut has_feedback, mut has_video) = (0, false, false);
        for line in text.lines() {
            if line.starts_with("a=candidate:") || line.starts_with("a=end-of-candidates") {
                continue;
            }
            media += usize::from(line.starts_with("m="));
            mids.extend(line.strip_prefix("a=mid:").map(|mid| Mid::from(mid.trim_end())));
            has_video |= line.starts_with("m=video");
            has_feedback |= line.starts_with("a=rtcp-fb:") && line.ends_with(" transport-cc");
            kept.push_str(line.trim_end_matches('\r'));
            kept.push_str("\r\n");
        }
        if media > MEDIA_MAX {
            return Err(OfferError::Media(media));
        }
        let sdp = SdpOffer::from_sdp_string(&kept).map_err(OfferError::sdp)?;
        Ok(Self { sdp, has_feedback, has_video, mids })
    }
}
