//! Conversions between payloads and messages of a file, lossless to the bit.

use crate::protobuf::{Fields, Value, put_bytes, put_fixed32, put_time, put_varint};
use crate::ros::{self, ROS_SCHEMA};
use crate::schema::{LEVEL_INFO, Schema};
use paceline_media::audio::{AudioFormat, Coding};
use paceline_media::codec::Codec;
use paceline_media::{Format, PixelFormat, Size};
use serde::de::IgnoredAny;
use serde_json::{Map, Value as Json, json};

/// The encoding of JSON schemas.
pub const JSON_SCHEMA: &str = "jsonschema";
const PROTOBUF: &str = "protobuf";
/// The media type of messages of ROS 2. The name of their type may follow a semicolon.
const CDR: &str = "application/cdr";

/// The message format of a channel.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Body {
    /// A JPEG picture in foxglove.CompressedImage.
    Jpeg,
    /// A PNG picture in foxglove.CompressedImage.
    Png,
    /// An access unit in foxglove.CompressedVideo.
    Video(Codec),
    /// An 8-bit RGB picture in foxglove.RawImage.
    Pixels {
        /// The width in pixels.
        width: u32,
        /// The height in pixels.
        height: u32,
    },
    /// A block of 16-bit audio in foxglove.RawAudio.
    Sound {
        /// The sample rate in Hz.
        rate: u32,
        /// The number of channels.
        channels: u8,
    },
    /// Text in foxglove.Log.
    Text,
    /// JSON, unchanged.
    Json,
    /// Bytes, unchanged.
    Bytes,
}

/// A message that does not conform to its schema.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{bytes} bytes are not a valid {schema}: {what}")]
pub struct BodyError {
    /// The schema.
    pub schema: &'static str,
    /// The length of the message in bytes.
    pub bytes: usize,
    /// The problem.
    pub what: &'static str,
}

/// A schema: its name, its encoding, its data.
pub type Described = (String, &'static str, Vec<u8>);

impl Body {
    /// Returns the body for a payload of this media type: a schema that Foxglove displays if the
    /// payload conforms to the type, and [`Body::Bytes`] otherwise.
    #[must_use]
    pub fn of(encoding: &str, payload: &[u8]) -> Self {
        let body = Self::of_type(encoding);
        if body.fits(payload) { body } else { Self::Bytes }
    }

    /// Returns the body for payloads of this media type, which may not conform to it.
    #[must_use]
    pub fn of_type(encoding: &str) -> Self {
        match encoding.parse() {
            Ok(Format::Jpeg) => return Self::Jpeg,
            Ok(Format::Png) => return Self::Png,
            Ok(Format::H264) => return Self::Video(Codec::H264),
            Ok(Format::H265) => return Self::Video(Codec::H265),
            Ok(Format::Av1) => return Self::Video(Codec::Av1),
            Ok(Format::Rgb8(Size { width, height })) => return Self::Pixels { width, height },
            // Foxglove has no planar format.
            Ok(Format::I420(..) | Format::Ros(_)) => return Self::Bytes,
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

    /// Returns true if the payload can be stored in this body.
    #[must_use]
    pub fn fits(&self, payload: &[u8]) -> bool {
        match *self {
            Self::Jpeg | Self::Png | Self::Video(_) | Self::Sound { .. } | Self::Bytes => true,
            Self::Pixels { width, height } => {
                let bytes = PixelFormat::Rgb8.payload_len(Size { width, height });
                payload.len() as u64 == bytes
            }
            Self::Text => std::str::from_utf8(payload).is_ok(),
            Self::Json => serde_json::from_slice::<IgnoredAny>(payload).is_ok(),
        }
    }

    /// Returns true if messages of `other` have the same schema, so that one channel can contain both.
    #[must_use]
    pub fn has_schema_of(&self, other: &Self) -> bool {
        self.schema() == other.schema() && (self.schema().is_some() || self == other)
    }

    const fn schema(&self) -> Option<Schema> {
        match self {
            Self::Jpeg | Self::Png => Some(Schema::CompressedImage),
            Self::Video(_) => Some(Schema::CompressedVideo),
            Self::Pixels { .. } => Some(Schema::RawImage),
            Self::Sound { .. } => Some(Schema::RawAudio),
            Self::Text => Some(Schema::Log),
            Self::Json | Self::Bytes => None,
        }
    }

    /// Returns the message encoding for payloads of this media type.
    #[must_use]
    pub fn message_encoding<'a>(&self, encoding: &'a str) -> &'a str {
        match self.schema() {
            Some(_) => PROTOBUF,
            None if *self == Self::Json => "json",
            None => match encoding.split(';').next().unwrap_or_default() {
                CDR => "cdr",
                other => other,
            },
        }
    }

    /// Returns the schema of a channel, derived from its first payload. The schema of bytes names their
    /// media type, or the type of a message of ROS 2 with its definition, if that is known.
    #[must_use]
    pub fn describe(&self, tag: &str, encoding: &str, payload: &[u8]) -> Described {
        if let Some(schema) = self.schema() {
            return (schema.name().to_owned(), PROTOBUF, schema.descriptor_set());
        }
        if *self == Self::Json {
            return (tag.to_owned(), JSON_SCHEMA, json_schema(payload));
        }
        match ros::type_of(encoding) {
            Some(name) => match ros::schema(name) {
                Some(schema) => (name.to_owned(), ROS_SCHEMA, schema),
                None => (name.to_owned(), "", Vec::new()),
            },
            None => (encoding.to_owned(), "", Vec::new()),
        }
    }

    /// Appends the message of a payload to `out`.
    pub fn write(&self, tag: &str, captured_ns: u64, payload: &[u8], out: &mut Vec<u8>) {
        let Some(schema) = self.schema() else {
            out.extend_from_slice(payload);
            return;
        };
        put_time(out, 1, captured_ns);
        match *self {
            Self::Jpeg => put_bytes(out, 3, b"jpeg"),
            Self::Png => put_bytes(out, 3, b"png"),
            Self::Video(codec) => put_bytes(out, 4, video_name(codec).as_bytes()),
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
        if let Self::Jpeg | Self::Png | Self::Video(_) | Self::Pixels { .. } = self {
            let frame = if matches!(self, Self::Video(_)) { 2 } else { frame_field(schema) };
            put_bytes(out, frame, tag.as_bytes());
        }
        // The last field, so that [`Self::payload`] can return it without moving bytes.
        put_bytes(out, schema.payload_field(), payload);
    }

    /// Returns the payload of a message.
    ///
    /// # Errors
    /// [`BodyError`] if the bytes are not a message of the schema.
    pub fn payload<'a>(&self, message: &'a [u8]) -> Result<&'a [u8], BodyError> {
        let Some(schema) = self.schema() else { return Ok(message) };
        let wrong = |what| BodyError { schema: schema.name(), bytes: message.len(), what };
        let mut payload = &[][..];
        for field in Fields::new(message) {
            match field.ok_or(wrong("it is not a protobuf message"))? {
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

    /// Returns the body and media type of a channel. They follow from `recorded`, the media type in
    /// the metadata of a Paceline recording, and otherwise from the schema and the first message.
    /// Unknown messages are bytes, unchanged.
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
            "cdr" if !schema.is_empty() => format!("{CDR};{schema}"),
            "" => "application/octet-stream".to_owned(),
            other if other.contains('/') => other.to_owned(),
            // Not all of these are registered; rmw_zenoh and others use this form.
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

/// Returns the body and media type of a message with a Foxglove schema that another program wrote.
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
        (Schema::CompressedVideo, _, Some("h264")) => {
            known(Body::Video(Codec::H264), Format::H264.to_string())
        }
        (Schema::CompressedVideo, _, Some("h265")) => {
            known(Body::Video(Codec::H265), Format::H265.to_string())
        }
        (Schema::CompressedVideo, _, Some("av1")) => {
            known(Body::Video(Codec::Av1), Format::Av1.to_string())
        }
        (Schema::RawImage, _, Some("rgb8")) => {
            let (width, height) = (two, three);
            let size = Size::new(width, height).ok()?;
            // Padded rows cannot be represented.
            let packed = five == width.checked_mul(3)?;
            let body = Body::Pixels { width, height };
            packed.then(|| (body, Format::Rgb8(size).to_string()))
        }
        (Schema::RawAudio, Some("pcm-s16"), _) => {
            let (rate, channels) = (four, u8::try_from(five).ok()?);
            let format = AudioFormat::new(Coding::S16le, rate, channels).ok()?;
            known(Body::Sound { rate, channels }, format.to_string())
        }
        // A log of another program contains more than its text, so it stays unchanged.
        _ => None,
    }
}

/// Returns the codec's name in foxglove.CompressedVideo.
const fn video_name(codec: Codec) -> &'static str {
    match codec {
        Codec::H264 => "h264",
        Codec::H265 => "h265",
        Codec::Av1 => "av1",
    }
}

/// Returns a JSON schema for objects like this one, without required or exclusive properties. The
/// schema is empty for other values, because Foxglove accepts only an absent schema for them.
fn json_schema(payload: &[u8]) -> Vec<u8> {
    let value = serde_json::from_slice(payload).unwrap_or(Json::Null);
    let schema = shape(&value).filter(|_| value.is_object());
    schema.and_then(|schema| serde_json::to_vec(&schema).ok()).unwrap_or_default()
}

/// Returns the schema of values like this one, or `None` if the type is unknown. Foxglove rejects a
/// whole schema that contains an untyped value or an array of arrays.
fn shape(value: &Json) -> Option<Json> {
    Some(match value {
        // A later value may have any type.
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
            ("video/h264", vec![0, 0, 1, 0x65], Body::Video(Codec::H264)),
            ("video/h265", vec![0, 0, 1, 0x26, 1], Body::Video(Codec::H265)),
            ("video/av1", vec![0x12, 0], Body::Video(Codec::Av1)),
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
            ("application/cdr;sensor_msgs/msg/Image", vec![0, 1, 0, 0], Body::Bytes),
        ]
    }

    #[test]
    fn each_payload_round_trips_bit_for_bit() {
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
    fn foreign_recordings_are_recognised_by_schema() {
        for (encoding, payload, body) in cases() {
            let mut message = Vec::new();
            body.write("a", 5, &payload, &mut message);
            let (name, _, _) = body.describe("a", encoding, &payload);
            let (read, media) = Body::read(body.message_encoding(encoding), &name, None, &message);
            match body {
                Body::Json => assert_eq!((read, media.as_str()), (Body::Bytes, encoding)),
                Body::Text => assert_eq!(media, "application/protobuf"),
                Body::Bytes => assert_eq!(read, Body::Bytes),
                Body::Jpeg
                | Body::Png
                | Body::Video(_)
                | Body::Pixels { .. }
                | Body::Sound { .. } => {
                    assert_eq!((read, media.as_str()), (body, encoding));
                }
            }
        }
        let ros = Body::read("cdr", "sensor_msgs/msg/Imu", None, &[0, 1, 0, 0]);
        assert_eq!(ros, (Body::Bytes, "application/cdr;sensor_msgs/msg/Imu".to_owned()));
        assert_eq!(Body::read("cdr", "", None, &[0, 1, 0, 0]).1, "application/cdr");
        assert_eq!(Body::read("", "", None, &[]).1, "application/octet-stream");
    }

    #[test]
    fn a_json_schema_describes_the_fields() {
        let (name, kind, schema) = Body::Json.describe(
            "uav/gps",
            "application/json",
            br#"{"q":[0.5],"s":{"n":null},"b":true,"none":[],"rows":[[1]],"later":[null]}"#,
        );
        assert_eq!((name.as_str(), kind), ("uav/gps", "jsonschema"));
        let schema: Json = serde_json::from_slice(&schema).unwrap();
        let q = json!({"type": "array", "items": {"type": "number"}});
        // Values without a type are omitted: Foxglove would reject the whole schema.
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
    fn invalid_messages_are_errors() {
        let error = Body::Jpeg.payload(&[0x12, 0x05, 1]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "3 bytes are not a valid foxglove.CompressedImage: it is not a protobuf message"
        );
        assert!(Body::Jpeg.payload(&[0x10, 0x05]).is_err());
    }
}
