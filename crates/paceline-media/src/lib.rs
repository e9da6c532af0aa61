//! Media for Paceline: pictures, sound and flight logs, their formats and scaling, and a
//! machine-readable test card.
//!
//! The central value is [`Scaler`], which scales a payload to a smaller payload of the same format:
//!
//! ```
//! use paceline_media::{Format, Scaler, Size, TestCard, read_card_jpeg};
//!
//! let mut card = TestCard::new(Size::new(640, 480)?)?;
//! let picture = card.draw_jpeg(7, 1_000_000, 80)?;
//! let small = Scaler::new().scale(&Format::Jpeg, &picture, Size::new(160, 120)?)?;
//! assert!(small.len() < picture.len());
//! assert_eq!(read_card_jpeg(&small)?.map(|reading| reading.frame), Some(7));
//! # Ok::<(), paceline_media::MediaError>(())
//! ```
//!
//! Invariant: every input is checked before memory is reserved for it, and bad input is a [`MediaError`],
//! never a panic. All functions work on bytes in memory. Nothing here reads a clock, opens a file or starts a
//! thread.
//!
//! | module | content |
//! |---|---|
//! | (root) | [`Size`], [`PixelFormat`], [`Picture`], [`PictureBuf`]: uncompressed pictures |
//! | (root) | [`Format`]: the format of a message payload, as an encoding string |
//! | (root) | [`Scaler`]: scales a payload to a smaller payload of the same format |
//! | [`jpeg`] | size, decoding and encoding of one JPEG picture |
//! | [`h264`] | H.264 streams: access units, their dependencies, decoding and transcoding |
//! | [`h265`], [`av1`] | H.265 and AV1 streams: units and their dependencies, without decoding |
//! | [`video`] | the classes of the units of all three |
//! | [`png`] | size, decoding and encoding of one PNG picture |
//! | [`ros`] | pictures in messages of ROS 2 (CDR) |
//! | [`mjpeg`] | a file of concatenated JPEG pictures, split into pictures |
//! | [`stream`] | streams that arrive in parts, cut into samples; their types by content |
//! | [`film`] | MP4, Matroska, MPEG and FLV: pictures and sound with their times |
//! | (root) | [`Y4mReader`], [`Y4mWriter`]: uncompressed video files |
//! | [`audio`] | formats of sound, WAV files, G.711, Opus, and scaling of rate and channels |
//! | [`ulog`] | flight logs (PX4 ULog): topics, messages in file order, messages as JSON |
//! | (root) | [`TestCard`], [`read_card`]: pictures that contain their number and time |

mod annexb;
pub mod audio;
pub mod av1;
mod bits;
mod card;
mod check;
pub mod codec;
mod damage;
mod error;
mod exif;
pub mod film;
mod format;
pub mod h264;
pub mod h265;
pub mod jpeg;
mod markers;
pub mod mjpeg;
mod picture;
mod pixel;
pub mod png;
mod resize;
pub mod ros;
mod scale;
mod size;
pub mod stream;
pub mod ulog;
pub mod video;
mod y4m;

pub use card::{CardReading, TestCard, read_card, read_card_jpeg};
pub use damage::Damage;
pub use error::MediaError;
pub use format::Format;
pub use picture::{Picture, PictureBuf};
pub use pixel::{ColourRange, PixelFormat};
pub use scale::{Scaler, jpeg_bytes_min, png_bytes_min};
pub use size::{PIXELS_MAX, SIDE_MAX, Size};
pub use y4m::{FrameRate, Y4mReader, Y4mWriter};
