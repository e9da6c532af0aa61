//! Conversions between Zenoh's types and Paceline's.

use crate::ros;
use bytes::Bytes;
use paceline::{Encoding, Timestamp};
use std::borrow::Cow;
use std::sync::Arc;
use zenoh::bytes::{Encoding as ZenohEncoding, ZBytes};
use zenoh::time::Timestamp as ZenohTimestamp;

/// The media type that marks the deletion of a key. Such a sample has no payload.
pub(crate) const DELETION: &str = "application/x-zenoh-delete";

/// Converts a payload, without a copy if Zenoh stores it in one piece. It does so unless the
/// payload was fragmented in transport. Links do the same conversion; their interface contains no
/// Zenoh types.
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

pub(crate) fn attachment(attachment: &ZBytes) -> Arc<[u8]> {
    attachment.to_bytes().as_ref().into()
}

/// Converts a timestamp of Zenoh to a capture time with an unknown error bound.
pub(crate) fn captured(stamp: &ZenohTimestamp) -> Timestamp {
    Timestamp { nanos: stamp.get_time().as_nanos(), error: Timestamp::UNKNOWN_ERROR }
}

/// Caches the last conversion of an encoding. Most keys use the same encoding throughout.
pub(crate) struct Encodings<From, To>(Option<(From, To)>);

impl<From, To> Default for Encodings<From, To> {
    fn default() -> Self {
        Self(None)
    }
}

impl Encodings<ZenohEncoding, Encoding> {
    /// Returns the media type with the same name. A name that is not plain text is no media type,
    /// and becomes [`Encoding::Bytes`]. Without a name, the key of a ROS 2 program states the type.
    ///
    /// Use one cache per key.
    pub(crate) fn import(&mut self, encoding: &ZenohEncoding, key: &str) -> Encoding {
        if let Some((from, to)) = &self.0
            && from == encoding
        {
            return to.clone();
        }
        let name: Cow<'static, str> = encoding.into();
        let named = Encoding::new(&name);
        let named = if named.is_plain() { named } else { Encoding::Bytes };
        let unnamed = [ZenohEncoding::default(), ZenohEncoding::APPLICATION_CDR].contains(encoding);
        let to = if unnamed {
            ros::encoding_of(key).filter(Encoding::is_plain).unwrap_or(named)
        } else {
            named
        };
        self.0 = Some((encoding.clone(), to.clone()));
        to
    }
}

impl Encodings<Encoding, ZenohEncoding> {
    /// Returns Zenoh's encoding with the same name.
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
    fn encodings_round_trip() {
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
                let imported = import.import(&encoding, "robot/imu");
                assert_eq!(export.export(&imported), encoding, "{imported}");
            }
        }
        assert_eq!(import.import(&ZenohEncoding::default(), "robot/imu").as_str(), "zenoh/bytes");
    }

    #[test]
    fn only_samples_without_a_type_get_that_of_their_key() {
        let key = format!("0/a/std_msgs::msg::dds_::String_/RIHS01_{}", "0".repeat(64));
        let import = |encoding: ZenohEncoding| Encodings::default().import(&encoding, &key);
        let typed = Encoding::new("application/cdr;std_msgs/msg/String");
        assert_eq!(import(ZenohEncoding::default()), typed);
        assert_eq!(import(ZenohEncoding::APPLICATION_CDR), typed);
        assert_eq!(import(ZenohEncoding::TEXT_PLAIN), Encoding::Text);
    }

    #[test]
    fn an_encoding_that_is_not_plain_text_is_ignored() {
        for bad in ["text/plain;\x1b[2J", "a/b\nerror: all is lost", "image/\u{202e}gpj"] {
            assert_eq!(
                Encodings::default().import(&ZenohEncoding::from(bad), "robot/imu"),
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
