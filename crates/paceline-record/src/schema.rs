//! The Foxglove schemas that payloads here need. Names and field numbers are those of the .proto
//! files of foxglove-sdk. They are written as the FileDescriptorSet that MCAP requires.

use crate::protobuf::{put_bytes, put_varint};

/// A message type of Foxglove.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Schema {
    /// A JPEG or PNG picture.
    CompressedImage,
    /// A video access unit.
    CompressedVideo,
    /// An uncompressed picture.
    RawImage,
    /// A block of audio.
    RawAudio,
    /// A line of text.
    Log,
}

/// A field type. The numbers are those of google.protobuf.FieldDescriptorProto.
#[derive(Clone, Copy)]
enum Type {
    Fixed32,
    Text,
    Time,
    Bytes,
    Level,
}

const TIME: &str = ".google.protobuf.Timestamp";
const LEVEL: &str = ".foxglove.Log.Level";
const LEVELS: [&str; 6] = ["UNKNOWN", "DEBUG", "INFO", "WARNING", "ERROR", "FATAL"];
/// The log level of recorded text: INFO.
pub(crate) const LEVEL_INFO: u64 = 2;

impl Schema {
    /// All schemas.
    pub(crate) const ALL: [Self; 5] =
        [Self::CompressedImage, Self::CompressedVideo, Self::RawImage, Self::RawAudio, Self::Log];

    /// Returns the schema name in a file, by which Foxglove identifies it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::CompressedImage => "foxglove.CompressedImage",
            Self::CompressedVideo => "foxglove.CompressedVideo",
            Self::RawImage => "foxglove.RawImage",
            Self::RawAudio => "foxglove.RawAudio",
            Self::Log => "foxglove.Log",
        }
    }

    /// Returns the number of the payload field.
    pub(crate) const fn payload_field(self) -> u32 {
        match self {
            Self::CompressedImage | Self::RawAudio => 2,
            Self::CompressedVideo | Self::Log => 3,
            Self::RawImage => 6,
        }
    }

    const fn fields(self) -> &'static [(&'static str, u32, Type)] {
        match self {
            Self::CompressedImage => &[
                ("timestamp", 1, Type::Time),
                ("frame_id", 4, Type::Text),
                ("data", 2, Type::Bytes),
                ("format", 3, Type::Text),
            ],
            Self::CompressedVideo => &[
                ("timestamp", 1, Type::Time),
                ("frame_id", 2, Type::Text),
                ("data", 3, Type::Bytes),
                ("format", 4, Type::Text),
            ],
            Self::RawImage => &[
                ("timestamp", 1, Type::Time),
                ("frame_id", 7, Type::Text),
                ("width", 2, Type::Fixed32),
                ("height", 3, Type::Fixed32),
                ("encoding", 4, Type::Text),
                ("step", 5, Type::Fixed32),
                ("data", 6, Type::Bytes),
            ],
            Self::RawAudio => &[
                ("timestamp", 1, Type::Time),
                ("data", 2, Type::Bytes),
                ("format", 3, Type::Text),
                ("sample_rate", 4, Type::Fixed32),
                ("number_of_channels", 5, Type::Fixed32),
            ],
            Self::Log => &[
                ("timestamp", 1, Type::Time),
                ("level", 2, Type::Level),
                ("message", 3, Type::Text),
                ("name", 4, Type::Text),
                ("file", 5, Type::Text),
                ("line", 6, Type::Fixed32),
            ],
        }
    }

    /// Returns the schema as MCAP requires it for protobuf: a FileDescriptorSet with all
    /// dependencies.
    pub(crate) fn descriptor_set(self) -> Vec<u8> {
        let mut message = Vec::new();
        let short = self.name().strip_prefix("foxglove.").unwrap_or_default();
        put_bytes(&mut message, 1, short.as_bytes());
        for (name, number, kind) in self.fields() {
            put_bytes(&mut message, 2, &field(name, *number, *kind));
        }
        if self == Self::Log {
            put_bytes(&mut message, 4, &levels());
        }
        let mut set = Vec::new();
        put_bytes(&mut set, 1, &timestamp_file());
        let file = file(
            &format!("foxglove/{short}.proto"),
            "foxglove",
            Some("google/protobuf/timestamp.proto"),
            &message,
        );
        put_bytes(&mut set, 1, &file);
        set
    }
}

/// Encodes a google.protobuf.FileDescriptorProto with one message.
fn file(path: &str, package: &str, import: Option<&str>, message: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    put_bytes(&mut file, 1, path.as_bytes());
    put_bytes(&mut file, 2, package.as_bytes());
    put_bytes(&mut file, 3, import.unwrap_or_default().as_bytes());
    put_bytes(&mut file, 4, message);
    put_bytes(&mut file, 12, b"proto3");
    file
}

fn timestamp_file() -> Vec<u8> {
    let mut message = Vec::new();
    put_bytes(&mut message, 1, b"Timestamp");
    for (name, number, kind) in [("seconds", 1, 3), ("nanos", 2, 5)] {
        put_bytes(&mut message, 2, &plain_field(name, number, kind));
    }
    file("google/protobuf/timestamp.proto", "google.protobuf", None, &message)
}

fn field(name: &str, number: u32, kind: Type) -> Vec<u8> {
    let (kind, of) = match kind {
        Type::Fixed32 => (7, ""),
        Type::Text => (9, ""),
        Type::Time => (11, TIME),
        Type::Bytes => (12, ""),
        Type::Level => (14, LEVEL),
    };
    let mut field = plain_field(name, number, kind);
    put_bytes(&mut field, 6, of.as_bytes());
    field
}

/// Encodes a google.protobuf.FieldDescriptorProto of a non-repeated field.
fn plain_field(name: &str, number: u32, kind: u64) -> Vec<u8> {
    const OPTIONAL: u64 = 1;
    let mut field = Vec::new();
    put_bytes(&mut field, 1, name.as_bytes());
    put_varint(&mut field, 3, u64::from(number));
    put_varint(&mut field, 4, OPTIONAL);
    put_varint(&mut field, 5, kind);
    field
}

/// Encodes the google.protobuf.EnumDescriptorProto of the log levels.
fn levels() -> Vec<u8> {
    let mut levels = Vec::new();
    put_bytes(&mut levels, 1, b"Level");
    for (number, name) in (0u64..).zip(LEVELS) {
        let mut value = Vec::new();
        put_bytes(&mut value, 1, name.as_bytes());
        put_varint(&mut value, 2, number);
        put_bytes(&mut levels, 2, &value);
    }
    levels
}
