//! How a payload becomes a message of a file, and a message a payload again, bit for bit.

use crate::protobuf::{Fields, Value, put_bytes, put_fixed32, put_time, put_varint};
use crate::schema::{LEVEL_INFO, Schema};
use paceline_media::audio::{AudioFormat, Coding};
use paceline_media::{Format, PixelFormat, Size};
use serde::de::IgnoredAny;
use serde_json::{Map, Value as Json, json};

/// The encoding of schemas of JSON.
pub const JSON_SCHEMA: &str = "jsonschema";
const PROTOBUF: &str = "protobuf";

/// How the payloads of a channel stand in a file.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Body {
    /// A JPEG picture in foxglove.CompressedImage.
    Jpeg,
    /// A PNG picture in foxglove.CompressedImage.
    Png,
    /// An access unit in foxglove.CompressedVideo.
    Video,
    /// A picture of 8-bit RGB in foxglove.RawImage.
    Pixels {
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// A block of 16-bit sound in foxglove.RawAudio.
    Sound {
        /// Samples of each channel in a second.
        rate: u32,
        /// Channels.
        channels: u8,
    },
    /// Text in foxglove.Log.
    Text,
    /// JSON as it is.
    Json,
    /// Bytes as they are.
    Bytes,
}

/// A message that does not hold what its schema says.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{bytes} bytes are no {schema}: {what}")]
pub struct BodyError {
    /// The schema.
    pub schema: &'static str,
    /// How long the message is.
    pub bytes: usize,
    /// What is wrong.
    pub what: &'static str,
}

/// A schema: its name, its encoding, its data.
pub(crate) type Described = (String, &'static str, Vec<u8>);

impl Body {
    /// The body for a payload of this media type: what Foxglove shows where it knows the type and the payload
    /// is what the type says.
    #[must_use]
    pub fn of(encoding: &str, payload: &[u8]) -> Self {
        let body = Self::of_type(encoding);
        if body.fits(payload) { body } else { Self::Bytes }
    }

    fn of_type(encoding: &str) -> Self {
        match encoding.parse() {
            Ok(Format::Jpeg) => return Self::Jpeg,
            Ok(Format::Png) => return Self::Png,
            Ok(Format::H264) => return Self::Video,
            Ok(Format::Rgb8(Size { width, height })) => return Self::Pixels { width, height },
            // Foxglove knows no planes.
            Ok(Format::I420(_)) => return Self::Bytes,
            Err(_) => {}
        }
        match encoding.parse() {
            Ok(AudioFormat { coding: Coding::S16le, rate, channels }) => {
                Self::Sound { rate, channels }
            }
            Ok(AudioFormat { coding: Coding::Ulaw | Coding::Alaw, .. }) => Self::Bytes,
            Err(_) => match encoding {
                "text/plain" => Self::Text,
                "application/json" => Self::Json,
                _ => Self::Bytes,
            },
        }
    }

    /// True if a payload can stand in this body.
    #[must_use]
    pub fn fits(&self, payload: &[u8]) -> bool {
        match *self {
            Self::Jpeg | Self::Png | Self::Video | Self::Sound { .. } | Self::Bytes => true,
            Self::Pixels { width, height } => {
                let bytes = PixelFormat::Rgb8.payload_len(Size { width, height });
                payload.len() as u64 == bytes
            }
            Self::Text => std::str::from_utf8(payload).is_ok(),
            Self::Json => serde_json::from_slice::<IgnoredAny>(payload).is_ok(),
        }
    }

    const fn schema(&self) -> Option<Schema> {
        match self {
            Self::Jpeg | Self::Png => Some(Schema::CompressedImage),
            Self::Video => Some(Schema::CompressedVideo),
            Self::Pixels { .. } => Some(Schema::RawImage),
            Self::Sound { .. } => Some(Schema::RawAudio),
            Self::Text => Some(Schema::Log),
            Self::Json | Self::Bytes => None,
        }
    }

    /// The encoding of the messages of payloads of this media type.
    pub(crate) fn message_encoding<'a>(&self, encoding: &'a str) -> &'a str {
        match self.schema() {
            Some(_) => PROTOBUF,
            None if *self == Self::Json => "json",
            None if encoding == "application/cdr" => "cdr",
            None => encoding.split(';').next().unwrap_or_default(),
        }
    }

    /// The schema of a channel whose first payload is this one. Bytes have one that says their media type and
    /// no more.
    pub(crate) fn describe(&self, tag: &str, encoding: &str, payload: &[u8]) -> Described {
        if let Some(schema) = self.schema() {
            return (schema.name().to_owned(), PROTOBUF, schema.descriptor_set());
        }
        if *self == Self::Json {
            return (tag.to_owned(), JSON_SCHEMA, json_schema(payload));
        }
        (encoding.to_owned(), "", Vec::new())
    }

    /// Writes the message of a payload.
    pub(crate) fn write(&self, tag: &str, captured_ns: u64, payload: &[u8], out: &mut Vec<u8>) {
        let Some(schema) = self.schema() else {
            out.extend_from_slice(payload);
            return;
        };
        put_time(out, 1, captured_ns);
        match *self {
            Self::Jpeg => put_bytes(out, 3, b"jpeg"),
            Self::Png => put_bytes(out, 3, b"png"),
            Self::Video => put_bytes(out, 4, b"h264"),
            Self::Pixels { width, height } => {
                put_fixed32(out, 2, width);
                put_fixed32(out, 3, height);
                put_bytes(out, 4, b"rgb8");
                put_fixed32(out, 5, width.saturating_mul(3));
            }
            Self::Sound { rate, channels } => {
                put_bytes(out, 3, b"pcm-s16");
                put_fixed32(out, 4, rate);
                put_fixed32(out, 5, u32::from(channels));
            }
            Self::Text => {
                put_varint(out, 2, LEVEL_INFO);
                put_bytes(out, 4, tag.as_bytes());
            }
            Self::Json | Self::Bytes => {}
        }
        if let Self::Jpeg | Self::Png | Self::Video | Self::Pixels { .. } = self {
            let frame = if *self == Self::Video { 2 } else { frame_field(schema) };
            put_bytes(out, frame, tag.as_bytes());
        }
        // Last, so that nothing moves when it is cut out again.
        put_bytes(out, schema.payload_field(), payload);
    }

    /// The payload of a message.
    ///
    /// # Errors
    /// [`BodyError`] for bytes that are no message of the schema.
    pub fn payload<'a>(&self, message: &'a [u8]) -> Result<&'a [u8], BodyError> {
        let Some(schema) = self.schema() else { return Ok(message) };
        let wrong = |what| BodyError { schema: schema.name(), bytes: message.len(), what };
        let mut payload = &[][..];
        for field in Fields::new(message) {
            match field.ok_or(wrong("it is no protobuf message"))? {
                (number, Value::Bytes(bytes)) if number == schema.payload_field() => {
                    payload = bytes;
                }
                (number, Value::Varint(_) | Value::Fixed32(_) | Value::Fixed64)
                    if number == schema.payload_field() =>
                {
                    return Err(wrong("its payload is a number"));
                }
                _ => {}
            }
        }
        Ok(payload)
    }

    /// What the messages of a channel are, and their media type: by what a recorder of ours has written beside
    /// them, else by their schema and the first of them. What nothing is known of is bytes as they are.
    #[must_use]
    pub fn read(
        message_encoding: &str,
        schema: &str,
        recorded: Option<&str>,
        first: &[u8],
    ) -> (Self, String) {
        if let Some(encoding) = recorded {
            let body = Self::of_type(encoding);
            let wrapped = message_encoding == PROTOBUF && body.schema().is_some();
            let json = message_encoding == "json" && body == Self::Json;
            let body = if wrapped || json { body } else { Self::Bytes };
            return (body, encoding.to_owned());
        }
        if message_encoding == PROTOBUF
            && let Some(schema) = Schema::ALL.into_iter().find(|known| known.name() == schema)
            && let Some(known) = foreign(schema, first)
        {
            return known;
        }
        let encoding = match message_encoding {
            "json" => "application/json".to_owned(),
            "" => "application/octet-stream".to_owned(),
            other if other.contains('/') => other.to_owned(),
            // Not all of these are registered; rmw_zenoh and others write the first of them so.
            other => format!("application/{other}"),
        };
        (Self::Bytes, encoding)
    }
}

const fn frame_field(schema: Schema) -> u32 {
    match schema {
        Schema::CompressedImage => 4,
        Schema::CompressedVideo => 2,
        Schema::RawImage => 7,
        Schema::RawAudio | Schema::Log => 0,
    }
}

/// What a message of one of Foxglove's schemas holds that another program has written.
fn foreign(schema: Schema, message: &[u8]) -> Option<(Body, String)> {
    let mut texts = [None; 8];
    let mut numbers = [0u32; 8];
    for field in Fields::new(message) {
        let (number, value) = field?;
        let place = usize::try_from(number).ok()?;
        match value {
            Value::Bytes(bytes) => {
                if let Some(slot) = texts.get_mut(place) {
                    *slot = std::str::from_utf8(bytes).ok();
                }
            }
            Value::Fixed32(value) => {
                if let Some(slot) = numbers.get_mut(place) {
                    *slot = value;
                }
            }
            Value::Varint(_) | Value::Fixed64 => {}
        }
    }
    let [_, _, two, three, four, five, ..] = numbers;
    let [.., third, fourth, _, _, _] = texts;
    let known = |body: Body, encoding: String| Some((body, encoding));
    match (schema, third, fourth) {
        (Schema::CompressedImage, Some("jpeg" | "jpg"), _) => {
            known(Body::Jpeg, Format::Jpeg.to_string())
        }
        (Schema::CompressedImage, Some("png"), _) => known(Body::Png, Format::Png.to_string()),
        (Schema::CompressedVideo, _, Some("h264")) => known(Body::Video, Format::H264.to_string()),
        (Schema::RawImage, _, Some("rgb8")) => {
            let (width, height) = (two, three);
            let size = Size::new(width, height).ok()?;
            // Rows with room between them are none of ours.
            let packed = five == width.checked_mul(3)?;
            let body = Body::Pixels { width, height };
            packed.then(|| (body, Format::Rgb8(size).to_string()))
        }
        (Schema::RawAudio, Some("pcm-s16"), _) => {
            let (rate, channels) = (four, u8::try_from(five).ok()?);
            let format = AudioFormat::new(Coding::S16le, rate, channels).ok()?;
            known(Body::Sound { rate, channels }, format.to_string())
        }
        // A log of another program says more than its text; it stays as it is.
        _ => None,
    }
}

/// What objects like this one look like; nothing is required, and more may be there. Empty for what is no object: there
/// Foxglove takes no schema but none.
fn json_schema(payload: &[u8]) -> Vec<u8> {
    let value = serde_json::from_slice(payload).unwrap_or(Json::Null);
    let schema = shape(&value).filter(|_| value.is_object());
    schema.and_then(|schema| serde_json::to_vec(&schema).ok()).unwrap_or_default()
}

/// The schema of values like this one; none where it says no type. A schema with such a place, or with an array of
/// arrays, is one that Foxglove reads nothing by.
fn shape(value: &Json) -> Option<Json> {
    Some(match value {
        // A later one may be anything.
        Json::Null => return None,
        Json::Bool(_) => json!({ "type": "boolean" }),
        Json::Number(_) => json!({ "type": "number" }),
        Json::String(_) => json!({ "type": "string" }),
        Json::Array(items) => {
            let items = items.first().filter(|first| !first.is_array()).and_then(shape)?;
            json!({ "type": "array", "items": items })
        }
        Json::Object(fields) => {
            let of = |(name, value): (&String, &Json)| Some((name.clone(), shape(value)?));
            let fields: Map<String, Json> = fields.iter().filter_map(of).collect();
            json!({ "type": "object", "properties": fields })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases() -> Vec<(&'static str, Vec<u8>, Body)> {
        vec![
            ("image/jpeg", vec![0xff, 0xd8, 1], Body::Jpeg),
            ("image/png", vec![], Body::Png),
            ("video/h264", vec![0, 0, 1, 0x65], Body::Video),
            (
                "video/raw;format=rgb;width=2;height=1",
                vec![9; 6],
                Body::Pixels { width: 2, height: 1 },
            ),
            ("video/raw;format=rgb;width=2;height=1", vec![9; 5], Body::Bytes),
            ("video/raw;format=i420;width=2;height=2", vec![1; 6], Body::Bytes),
            (
                "audio/pcm;format=s16le;rate=48000;channels=2",
                vec![3; 16],
                Body::Sound { rate: 48_000, channels: 2 },
            ),
            ("audio/pcmu;rate=8000;channels=1", vec![3; 16], Body::Bytes),
            ("text/plain", "grüß".into(), Body::Text),
            ("text/plain", vec![0xff], Body::Bytes),
            ("application/json", b"{\"a\":1}".to_vec(), Body::Json),
            ("application/json", b"{\"a\":".to_vec(), Body::Bytes),
            ("application/x-ulog;message=att", vec![1, 2], Body::Bytes),
        ]
    }

    #[test]
    fn each_payload_comes_back_bit_for_bit() {
        for (encoding, payload, body) in cases() {
            assert_eq!(Body::of(encoding, &payload), body, "{encoding}");
            let mut message = Vec::new();
            body.write("robot/a", 1_700_000_000_123_456_789, &payload, &mut message);
            assert_eq!(body.payload(&message).unwrap(), payload, "{encoding}");
            let (name, _, _) = body.describe("robot/a", encoding, &payload);
            let kind = body.message_encoding(encoding);
            let ours = Body::read(kind, &name, Some(encoding), &message);
            assert_eq!(ours, (body, encoding.to_owned()));
        }
    }

    #[test]
    fn what_others_recorded_is_known_by_its_schema() {
        for (encoding, payload, body) in cases() {
            let mut message = Vec::new();
            body.write("a", 5, &payload, &mut message);
            let (name, _, _) = body.describe("a", encoding, &payload);
            let (read, media) = Body::read(body.message_encoding(encoding), &name, None, &message);
            match body {
                Body::Json => assert_eq!((read, media.as_str()), (Body::Bytes, encoding)),
                Body::Text => assert_eq!(media, "application/protobuf"),
                Body::Bytes => assert_eq!(read, Body::Bytes),
                Body::Jpeg | Body::Png | Body::Video | Body::Pixels { .. } | Body::Sound { .. } => {
                    assert_eq!((read, media.as_str()), (body, encoding));
                }
            }
        }
        let ros = Body::read("cdr", "sensor_msgs/msg/Imu", None, &[0, 1, 0, 0]);
        assert_eq!(ros, (Body::Bytes, "application/cdr".to_owned()));
        assert_eq!(Body::read("", "", None, &[]).1, "application/octet-stream");
    }

    #[test]
    fn a_schema_of_json_says_what_is_there() {
        let (name, kind, schema) = Body::Json.describe(
            "uav/gps",
            "application/json",
            br#"{"q":[0.5],"s":{"n":null},"b":true,"none":[],"rows":[[1]],"later":[null]}"#,
        );
        assert_eq!((name.as_str(), kind), ("uav/gps", "jsonschema"));
        let schema: Json = serde_json::from_slice(&schema).unwrap();
        let q = json!({"type": "array", "items": {"type": "number"}});
        // What has no type there has no place: Foxglove would read nothing at all.
        let s = json!({"type": "object", "properties": {}});
        assert_eq!(
            schema,
            json!({"type": "object", "properties": {"q": q, "s": s, "b": {"type": "boolean"}}})
        );
        for other in ["[1]", "null", "5", "\"a\""] {
            let (_, kind, schema) = Body::Json.describe("a", "application/json", other.as_bytes());
            assert_eq!((kind, schema.len()), ("jsonschema", 0), "{other}");
        }
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        let error = Body::Jpeg.payload(&[0x12, 0x05, 1]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "3 bytes are no foxglove.CompressedImage: it is no protobuf message"
        );
        assert!(Body::Jpeg.payload(&[0x10, 0x05]).is_err());
    }
}
