//! Tests of the built command in separate processes, each on a simulated host.
#![cfg(test)]

mod answers;
mod bad_input;
mod calibration;
mod cameras;
mod clock;
mod commands;
mod completion;
mod daemon;
mod doctor;
mod documented;
mod ffmpeg;
mod files;
mod films;
mod grafana;
mod guides;
mod host;
mod http;
mod http_encrypted;
mod inputs;
mod kills;
mod links;
mod live;
mod manual;
mod media;
mod meet;
mod observe;
mod opus;
mod place;
mod plain;
mod plain_answers;
mod plain_askers;
mod plain_bounds;
mod plain_first;
mod plain_queries;
mod plain_ros;
mod plan;
mod players;
mod pull;
mod record;
mod replay;
mod signals;
mod simulate;
mod sources;
mod telemetry;
mod timed;
mod top;
mod trust;
mod users;
mod values;
mod video;
mod wishes;
mod worlds;

/// The program under test.
const BINARY: &str = env!("CARGO_BIN_EXE_paceline");
