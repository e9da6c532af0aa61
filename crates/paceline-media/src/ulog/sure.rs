//! Records that prove by their own content that they are records. After a damaged place, reading continues at the
//! first of these.

use super::layout::{basic_size, is_format, is_name};

/// The content of a synchronisation mark.
pub(super) const SYNC: &[u8] = b"\x2f\x73\x13\x20\x25\x0c\xbb\x12";
/// Longer texts and formats are read, but prove nothing: this bounds the time of a search.
const TEXT_MAX: usize = 4_096;

/// Returns true if the body of a record of this kind, which is neither data nor a subscription, can hardly be anything
/// else.
pub(super) fn is_sure(kind: u8, body: &[u8]) -> bool {
    match (kind, body) {
        (b'S', body) => body == SYNC,
        (b'F', body) => body.len() <= TEXT_MAX && is_format(body),
        (b'I' | b'P', body) | (b'M' | b'Q', [_, body @ ..]) => is_value(body),
        (b'L', [level, _, _, _, _, _, _, _, _, text @ ..])
        | (b'C', [level, _, _, _, _, _, _, _, _, _, _, text @ ..]) => {
            matches!(level, b'0'..=b'7') && is_text(text)
        }
        _ => false,
    }
}

/// Returns true for a key of a known type with a value of its size: the length of the key, `type name`, the value.
fn is_value(body: &[u8]) -> bool {
    let Some((len, rest)) = body.split_first() else { return false };
    let Some((key, value)) = rest.split_at_checked(usize::from(*len)) else { return false };
    let key = str::from_utf8(key).ok().and_then(|key| key.split_once(' '));
    key.is_some_and(|(kind, name)| {
        is_name(name, b"_-.") && basic_size(kind).is_some_and(|size| size == value.len())
    })
}

fn is_text(text: &[u8]) -> bool {
    let plain =
        |text: &str| text.chars().all(|c| !c.is_control() || matches!(c, '\t' | '\n' | '\r'));
    (1..=TEXT_MAX).contains(&text.len()) && str::from_utf8(text).is_ok_and(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_prove_themselves_by_their_content() {
        for (kind, body) in [
            (b'S', SYNC),
            (b'F', b"a:uint64_t timestamp;b[3] c;"),
            (b'I', b"\x0bchar[3] sysPX4"),
            (b'P', b"\x0bint32_t A_Bwxyz"),
            (b'M', b"\x01\x0bchar[3] sysPX4"),
            (b'L', b"6\0\0\0\0\0\0\0\0armed"),
            (b'C', b"6\x01\0\0\0\0\0\0\0\0\0armed"),
        ] {
            assert!(is_sure(kind, body), "{} {body:?}", char::from(kind));
            for len in 0..body.len().min(9) {
                assert!(!is_sure(kind, &body[..len]), "{} of {len} bytes", char::from(kind));
            }
        }
        for (kind, body) in [
            (b'S', &[0; 8][..]),
            (b'F', b"a:uint64_t timestamp"),
            (b'F', b"a:uint64_t\0timestamp;"),
            (b'I', b"\x0bchar[4] sysPX4"),
            (b'P', b"\x0bint99_t A_Bwxyz"),
            (b'L', b"9\0\0\0\0\0\0\0\0armed"),
            (b'L', b"6\0\0\0\0\0\0\0\0ar\x1bmed"),
            (b'?', b"of the future"),
        ] {
            assert!(!is_sure(kind, body), "{} {body:?}", char::from(kind));
        }
    }
}
