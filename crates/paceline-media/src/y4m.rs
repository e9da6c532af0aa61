//! YUV4MPEG2 (`.y4m`): uncompressed video files, 8-bit 4:2:0.

mod header;
mod read;
mod write;

pub use header::FrameRate;
pub(crate) use header::{Header, LINE_MAX, first_line};
pub use read::Y4mReader;
pub use write::Y4mWriter;

#[cfg(test)]
mod tests;
