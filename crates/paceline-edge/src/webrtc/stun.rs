//! The user name of a STUN request, by which a shared socket finds the session (RFC 8489, 14.3).

/// The bytes of the header.
const HEADER_BYTES: usize = 20;
const COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
const USERNAME: u16 = 6;

/// Returns the user fragment of this side in a STUN request: the part of its user name before the colon. `None` for other packets.
///
/// ```
/// use paceline_edge::stun_user;
///
/// let mut request = vec![0, 1, 0, 8, 0x21, 0x12, 0xa4, 0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// request.extend([0, 6, 0, 4]);
/// request.extend(b"ab:c");
/// assert_eq!(stun_user(&request), Some("ab"));
/// ```
#[must_use]
pub fn stun_user(packet: &[u8]) -> Option<&str> {
    let (header, mut rest) = packet.split_at_checked(HEADER_BYTES)?;
    // The first two bits of STUN are 0, and the cookie is fixed.
    if header.first()? & 0xc0 != 0 || header.get(4..8)? != COOKIE {
        return None;
    }
    while let Some((&[a, b, c, d], behind)) = rest.split_first_chunk::<4>() {
        let length = usize::from(u16::from_be_bytes([c, d]));
        let value = behind.get(..length)?;
        if u16::from_be_bytes([a, b]) == USERNAME {
            let (own, _) = std::str::from_utf8(value).ok()?.split_once(':')?;
            return Some(own);
        }
        rest = behind.get(length.next_multiple_of(4)..)?;
    }
    None
}
