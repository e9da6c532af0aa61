//! Tests with several nodes in one process, over real Zenoh sessions and sockets.
#![cfg(test)]

mod audio;
mod cable;
mod change;
mod classes;
mod counts;
mod faults;
mod feedback;
mod ffmpeg;
mod figures;
mod film;
mod films;
mod first;
mod flood;
mod foreign_video;
mod fresh;
mod hosts;
mod large;
mod late_joiner;
mod meeting;
mod net;
mod pictures;
mod proxied;
mod pull;
mod radio;
mod red_team;
mod refusals;
mod rights;
mod rogue;
mod scenarios;
mod strangers;
mod sums;
mod support;
mod thin_link;
mod trust;
mod video;
