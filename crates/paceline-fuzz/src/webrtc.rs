//! The fuzz body for peers of WebRTC: the parts that this project reads itself, before a session exists.

use paceline_edge::{OFFER_BYTES_MAX, WebrtcOffer, stun_user};

/// Reads the bytes as a datagram of a check, and as an offer. An error is one line, and a user name is a part of its datagram.
pub fn webrtc(data: &[u8]) {
    if let Some(user) = stun_user(data) {
        assert!(
            data.windows(user.len().max(1)).any(|part| part == user.as_bytes()) || user.is_empty()
        );
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    match WebrtcOffer::parse(text) {
        Ok(_) => assert!(text.len() <= OFFER_BYTES_MAX),
        Err(error) => {
            let error = error.to_string();
            assert!(error.len() < 1_000 && !error.contains('\n'), "{error}");
        }
    }
}
