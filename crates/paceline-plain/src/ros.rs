//! Names of rmw_zenoh, which publishes on `DOMAIN/TOPIC/TYPE/HASH` and states no encoding.

use paceline::Encoding;

/// The hexadecimal digits of a hash of a type (REP-2011).
const HASH_DIGITS: usize = 64;

/// Returns the media type of the messages on a key of rmw_zenoh: CDR with the name of its type, as Zenoh writes a
/// schema. Returns `None` for other keys.
pub(crate) fn encoding_of(key: &str) -> Option<Encoding> {
    let mut chunks = key.rsplit('/');
    let digits = chunks.next()?.strip_prefix("RIHS01_")?;
    let is_hash = digits.len() == HASH_DIGITS && digits.bytes().all(|it| it.is_ascii_hexdigit());
    let mut names = chunks.next().filter(|_| is_hash)?.split("::");
    let (package, kind) = (names.next()?, names.next()?);
    let name = names.next().filter(|it| *it == "dds_").and_then(|_| names.next())?;
    let name = name.strip_suffix('_').filter(|_| names.next().is_none())?;
    Some(Encoding::new(&format!("application/cdr;{package}/{kind}/{name}")))
}

/// Returns the time of a message, in nanoseconds since 1970, and the id of its publisher, from the attachment that
/// rmw_zenoh adds: sequence number, time and publisher. Older versions put the name of each before it.
pub(crate) fn published(attachment: &[u8]) -> Option<(u64, [u8; 16])> {
    let (values, publisher) = match attachment.len() {
        33 => (attachment, attachment.get(16..)?),
        77 => (attachment.get(33..)?, attachment.get(60..)?),
        _ => return None,
    };
    // The publisher is a sequence of bytes with its length.
    let publisher = publisher.strip_prefix(&[16])?.try_into().ok()?;
    let nanos = i64::from_le_bytes(*values.get(8..)?.first_chunk()?);
    Some((u64::try_from(nanos).ok()?, publisher))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_an_attachment_name_time_and_publisher() {
        let (number, time, publisher) = (5_i64, 1_700_000_000_123_456_789_i64, [9; 16]);
        let (number_bytes, time_bytes) = (number.to_le_bytes(), time.to_le_bytes());
        let short = [&number_bytes[..], &time_bytes, &[16], &publisher].concat();
        let named = |name: &str| [&[u8::try_from(name.len()).unwrap()], name.as_bytes()].concat();
        let long = [
            named("sequence_number"),
            number_bytes.to_vec(),
            named("source_timestamp"),
            time_bytes.to_vec(),
            named("source_gid"),
            vec![16],
            publisher.to_vec(),
        ];
        for attachment in [short.clone(), long.concat()] {
            let found = published(&attachment);
            assert_eq!(found, Some((1_700_000_000_123_456_789, publisher)), "{attachment:?}");
            assert_eq!(published(&attachment[1..]), None);
        }
        assert_eq!(published(&[7; 33]), None);
        assert_eq!(published(&[&number_bytes[..], &[0xff; 8], &[16], &publisher].concat()), None);
    }

    #[test]
    fn only_keys_of_rmw_zenoh_have_a_type() {
        let hash = format!("RIHS01_{}", "0a".repeat(32));
        let of = |key: &str| encoding_of(key).map(|encoding| encoding.as_str().to_owned());
        let image = format!("0/front/camera/image_raw/sensor_msgs::msg::dds_::Image_/{hash}");
        assert_eq!(of(&image).as_deref(), Some("application/cdr;sensor_msgs/msg/Image"));
        let feedback = format!("7/a/x::action::dds_::Go_FeedbackMessage_/{hash}");
        assert_eq!(of(&feedback).as_deref(), Some("application/cdr;x/action/Go_FeedbackMessage"));
        for other in [
            "robot/camera".to_owned(),
            image.replace("0a0a", "0a"),
            image.replace("0a0a", "0a0x"),
            image.replace("RIHS01", "RIHS02"),
            image.replace("dds_::Image_", "dds_::Image"),
            image.replace("dds_::", ""),
            image.replace("Image_", "Image_::x_"),
            hash,
            String::new(),
        ] {
            assert_eq!(of(&other), None, "{other}");
        }
    }
}
