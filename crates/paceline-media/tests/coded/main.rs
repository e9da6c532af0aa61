#![cfg(test)]
//! Streams that ffmpeg encodes as H.265 and AV1: split, thinned, and started at each key unit. ffmpeg decodes
//! the results.

mod av1;
mod ffmpeg;
mod h265;
mod oracle;
mod order;
