#![cfg(test)]
//! Films as ffmpeg and GStreamer write them: the order, number and times of the units of each track equal those of
//! `ffprobe -show_packets`.

mod compare;
mod made;
mod read;
mod samples;
