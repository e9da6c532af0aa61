//! The payloads of delivered samples: their description, and the files and formats to which commands write
//! them.

mod film;
mod named;
mod ogg;
mod player;
mod sample;
mod sink;
mod still;
mod text;
mod wave;

#[cfg(test)]
pub(crate) use sample::tests::delivery as test_delivery;
pub(crate) use sample::{LatestForm, SampleLine, picture_size};
pub(crate) use sink::{Sink, is_stdout};
pub(crate) use text::text_line;
