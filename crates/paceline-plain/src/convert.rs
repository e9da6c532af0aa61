//! What Zenoh and Paceline call the same thing.

use bytes::Bytes;
use paceline::{Encoding, Timestamp};
use std::borrow::Cow;
use std::sync::Arc;
use zenoh::bytes::{Encoding as ZenohEncoding, ZBytes};
use zenoh::time::Timestamp as ZenohTimestamp;

/// The media type that stands for the deletion of a key: it comes with no payload.
pub(crate) const DELETION: &str = "application/x-zenoh-delete";

/// A payload without a copy where Zenoh has it in one piece, as it has unless it was cut on its way. Links do
/// the same by themselves: no type of Zenoh's is in the interface between the two.
pub(crate) fn payload(payload: &ZBytes) -> Bytes {
    struct Whole(ZBytes);
    impl AsRef<[u8]> for Whole {
        fn as_ref(&self) -> &[u8] {
            self.0.slices().next().unwrap_or_default()
        }
    }
    let mut slices = payload.slices();
    match (slices.next(), slices.next()) {
        (Some(_), None) => Bytes::from_owner(Whole(payload.clone())),
        (None, _) => Bytes::new(),
        (Some(_), Some(_)) => Bytes::from(payload.to_bytes().into_owned()),
    }
}

/// What stands beside a payload.
pub(crate) fn attachment(attachment: &ZBytes) -> Arc<[u8]> {
    attachment.to_bytes().as_ref().into()
}

/// When a sample was captured, by the clock that stamped it.
pub(crate) fn captured(stamp: &ZenohTimestamp) -> Timestamp {
    Timestamp { nanos: stamp.get_time().as_nanos(), error: Timestamp::UNKNOWN_ERROR }
}

/// Remembers the last encoding and what it is on the other side: most keys have one all their life.
pub(crate) struct Encodings<From, To>(Option<(From, To)>);

impl<From, To> Default for Encodings<From, To> {
    fn default() -> Self {
        Self(None)
    }
}

impl Encodings<ZenohEncoding, Encoding> {
    /// The media type by its name; that of bytes of an unknown type where the name is not plain text, as no media type
    /// is.
    pub(crate) fn import(&mut self, encoding: &ZenohEncoding) -> Encoding {
        if let Some((from, to)) = &self.0
            && from == encoding
        {
            return to.clone();
        }
        let name: Cow<'static, str> = encoding.into();
        let named = Encoding::new(&name);
        let to = if named.is_plain() { named } else { Encoding::Bytes };
        self.0 = Some((encoding.clone(), to.clone()));
        to
    }
}

impl Encodings<Encoding, ZenohEncoding> {
    /// The same by its name.
    pub(crate) fn export(&mut self, encoding: &Encoding) -> ZenohEncoding {
        if let Some((from, to)) = &self.0
            && from == encoding
        {
            return to.clone();
        }
        let to = ZenohEncoding::from(encoding.as_str());
        self.0 = Some((encoding.clone(), to.clone()));
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_come_back() {
        let (mut import, mut export) = (Encodings::default(), Encodings::default());
        for encoding in [
            ZenohEncoding::default(),
            ZenohEncoding::TEXT_PLAIN,
            ZenohEncoding::TEXT_PLAIN.with_schema("utf-8"),
            ZenohEncoding::APPLICATION_OCTET_STREAM,
            ZenohEncoding::APPLICATION_CDR,
            ZenohEncoding::IMAGE_JPEG,
            ZenohEncoding::from("something/else;of=its own"),
        ] {
            for _ in 0..2 {
                let there = import.import(&encoding);
                assert_eq!(export.export(&there), encoding, "{there}");
            }
        }
        assert_eq!(import.import(&ZenohEncoding::default()).as_str(), "zenoh/bytes");
    }

    #[test]
    fn an_encoding_that_is_no_plain_text_is_not_taken_over() {
        for bad in ["text/plain;\x1b[2J", "a/b\nerror: all is lost", "image/\u{202e}gpj"] {
            assert_eq!(
                Encodings::default().import(&ZenohEncoding::from(bad)),
                Encoding::Bytes,
                "{bad:?}"
            );
        }
    }

    #[test]
    fn payloads_in_pieces_are_joined() {
        let mut writer = ZBytes::writer();
        writer.append(ZBytes::from(vec![1, 2]));
        writer.append(ZBytes::from(vec![3]));
        assert_eq!(payload(&writer.finish()), Bytes::from_static(&[1, 2, 3]));
        assert_eq!(payload(&ZBytes::new()), Bytes::new());
        assert_eq!(payload(&ZBytes::from(vec![7; 9])), vec![7; 9]);
    }
}
