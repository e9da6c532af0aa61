#![cfg(test)]
//! Films as ffmpeg and GStreamer write them: the units of each track have the order, number and times of the
//! packets of `ffprobe -show_packets`.

mod compare;
mod made;
mod read;
mod samples;
