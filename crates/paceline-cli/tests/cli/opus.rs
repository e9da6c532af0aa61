//! Sound at a bit rate: WAV and Ogg files, recordings, and refusals.

use crate::host::{Ended, Host, Running, arg, free_port};
use crate::record::support::{messages, payloads};
use paceline_media::audio::{AudioFormat, Coding, opus_micros, read_wav, wav_header};
use rustix::process::Signal;
use std::path::Path;
use std::process::Command;

/// Writes two seconds of a tone of 440 Hz, in stereo at 48 kHz.
#[expect(clippy::cast_possible_truncation, reason = "at most 12,000")]
pub(crate) fn tone(file: &Path) {
    let level = |frame: u32| {
        let turns = f64::from(frame) * 440.0 / 48_000.0;
        ((turns * std::f64::consts::TAU).sin() * 12_000.0) as i16
    };
    let samples = (0..96_000).flat_map(|frame| [level(frame); 2]);
    let bytes: Vec<u8> = samples.flat_map(i16::to_le_bytes).collect();
    let format = AudioFormat::new(Coding::S16le, 48_000, 2).unwrap();
    let header = wav_header(&format, u32::try_from(bytes.len()).unwrap());
    std::fs::write(file, [header, bytes].concat()).unwrap();
}

/// Returns the rising edges and the loudest level of 16-bit sound.
fn heard(bytes: &[u8]) -> (usize, u16) {
    let levels: Vec<i16> =
        bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
    let rises = levels.windows(2).filter(|pair| pair[0] < 0 && pair[1] >= 0).count();
    (rises, levels.iter().map(|level| level.unsigned_abs()).max().unwrap_or(0))
}

/// Checks that a file has about this many rising edges per two seconds, at about the volume of the tone.
fn is_tone(bytes: &[u8]) {
    let (rises, loudest) = heard(bytes);
    assert!((850..=900).contains(&rises), "{rises}");
    assert!((10_000..14_000).contains(&loudest), "{loudest}");
}

/// Checks the exit code, and that the output contains `part`.
fn printed(ended: &Ended, code: i32, part: &str) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    assert!(ended.text().contains(part), "{part:?} is not in {ended:?} {}", ended.text());
}

fn interrupted(running: Running) -> Ended {
    running.signal(Signal::INT);
    let ended = running.ended();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended
}

#[test]
fn sound_is_coded_to_a_bit_rate_for_files_and_recordings() {
    let host = Host::new();
    let _node = host.start_node();
    let file = |name: &str| host.path(name);
    tone(&file("tone.wav"));
    let (wav, opus, mcap) = (file("mic.wav"), file("mic.opus"), file("run.mcap"));
    let ask = ["--audio", "48000x1", "--bitrate", "32kbit"];
    let sub = |out: &Path, more: &[&str]| {
        host.start(&[&["sub", "tone", "--out", arg(out), "--json"], more].concat())
    };
    let decoded = sub(&wav, &ask);
    let coded = sub(&opus, &["--bitrate", "64kbit"]);
    let recorder = host.start(&[&["record", "tone", "-o", arg(&mcap)], &ask[..]].concat());
    host.wait_for_subscriptions(3);
    let player = host.run(&["pub", "tone", "--file", arg(&file("tone.wav")), "--wait", "20s"]);
    player.said(0, "tone.wav, 100 blocks at 50 Hz");
    std::thread::sleep(std::time::Duration::from_millis(500));
    let (decoded, coded) = (interrupted(decoded), interrupted(coded));
    interrupted(recorder);

    let lines = decoded.json();
    assert_eq!(lines.len(), 101, "{decoded:?}");
    for line in &lines[..100] {
        let expected = (&80.into(), &"audio/opus;rate=48000;channels=1".into());
        assert_eq!((&line["bytes"], &line["encoding"]), expected);
        assert_eq!((&line["rate"], &line["channels"]), (&48_000.into(), &1.into()));
    }
    let bytes = std::fs::read(&wav).unwrap();
    let sound = read_wav(&bytes).unwrap();
    assert_eq!(sound.format, AudioFormat::new(Coding::S16le, 48_000, 1).unwrap());
    assert_eq!(sound.data.len(), 96_000 * 2);
    is_tone(&sound.data);

    assert!(coded.json()[..100].iter().all(|line| line["bytes"] == 160), "{coded:?}");
    check_with_ffmpeg(&opus);

    let (all, end) = messages(&std::fs::read(&mcap).unwrap());
    assert!(end.is_none(), "{end:?}");
    let packets = payloads(&all, "tone");
    assert_eq!(packets.len(), 100);
    let channel = &packets[0].0.channel;
    assert_eq!(channel.message_encoding, "audio/opus");
    assert_eq!(channel.schema, "audio/opus;rate=48000;channels=1");
    assert_eq!(channel.metadata["encoding"], "audio/opus;rate=48000;channels=1");
    assert!(packets.iter().all(|(_, packet)| opus_micros(packet) == Some(20_000)));
}

/// Checks that ffmpeg decodes a file to the two seconds of the tone.
fn check_with_ffmpeg(file: &Path) {
    let args = ["-v", "error", "-i", arg(file), "-f", "s16le", "-ac", "1", "-ar", "48000", "-"];
    let Ok(ended) = Command::new("ffmpeg").args(args).output() else {
        println!("skipped: decoding of the .opus file (ffmpeg is not installed)");
        return;
    };
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && errors.is_empty(), "{errors}");
    // Players leave out the encoder's delay.
    assert_eq!(ended.stdout.len(), (96_000 - 312) * 2);
    is_tone(&ended.stdout);
}

#[test]
fn a_recording_of_coded_sound_is_replayed_as_sound() {
    let host = Host::new();
    let node = host.start_node();
    let (file, mcap, wav) = (host.path("tone.wav"), host.path("run.mcap"), host.path("mic.wav"));
    tone(&file);
    let recorder =
        host.start(&["record", "tone", "-o", arg(&mcap), "--bitrate", "32kbit", "--json"]);
    host.wait_for_subscriptions(1);
    let player = host.run(&["pub", "tone", "--file", arg(&file), "--wait", "20s"]);
    assert_eq!(player.code, Some(0), "{player:?}");
    std::thread::sleep(std::time::Duration::from_millis(500));
    interrupted(recorder);
    let sub = host.start(&["sub", "tone", "--out", arg(&wav), "--json"]);
    host.wait_for_subscriptions(1);
    let replay = host.run(&["replay", arg(&mcap), "--wait", "20s"]);
    assert_eq!(replay.code, Some(0), "{replay:?}");
    std::thread::sleep(std::time::Duration::from_millis(500));
    let lines = interrupted(sub).json();
    assert!(lines.len() > 90, "{}", lines.len());
    assert_eq!(lines[0]["kind"], "audio");
    let bytes = std::fs::read(&wav).unwrap();
    let sound = read_wav(&bytes).unwrap();
    assert_eq!(sound.format.channels, 2);
    assert!(heard(&sound.data).1 > 10_000);
    drop(node);
}

#[test]
fn the_bit_rate_of_sound_is_checked_before_and_changed_while_it_runs() {
    let (robot, operator) = (Host::new(), Host::new());
    tone(&robot.path("tone.wav"));
    let port = free_port();
    let listen = format!("name=thin,listen=tcp/127.0.0.1:{port},capacity=300kbit");
    let connect = format!("name=thin,connect=tcp/127.0.0.1:{port},capacity=300kbit");
    let file = robot.path("tone.wav");
    let play = ["pub", "mic", "--file", arg(&file), "--loop", "--name", "mic", "--link", &listen];
    let _mic = robot.start(&play);
    let sub = ["sub", "mic", "--link", &connect, "--name", "console", "--json", "--bitrate"];
    let console = operator.start(&[&sub[..], &["32kbit", "--timeout", "60s"]].concat());
    operator.wait_for_subscriptions(1);
    let ask = |bits: &[&str]| {
        let ask = ["sub", "mic", "--dry-run", "--within", "200ms"];
        operator.run(&[&ask[..], bits].concat())
    };
    printed(&ask(&["--audio", "48000x1", "--bitrate", "32kbit"]), 0, "mic of mic: yes: within ");
    printed(&ask(&[]), 3, "mic of mic: no: link 'thin' of ");
    for (bits, text) in [
        ("5kbit", "--bitrate: bit rate of Opus is 5000, must be from 6000 to 510000 (bit/s)"),
        ("600kbit", "--bitrate: bit rate of Opus is 600000, must be from 6000"),
    ] {
        ask(&["--bitrate", bits]).said(2, text);
    }
    let refused = ask(&["--audio", "44100x1", "--bitrate", "32kbit"]);
    refused.said(2, "rate of Opus is 44100, must be 8000, 12000, 16000, 24000 or 48000");
    let set = robot.run(&["set", "mic", "--bitrate", "16kbit", "--within", "200ms"]);
    printed(&set, 0, "all at 16000 bit/s, within 200 ms\n\tgranted: within ");
    std::thread::sleep(std::time::Duration::from_secs(1));
    let lines = interrupted(console).json();
    let bytes: Vec<_> = lines.iter().filter_map(|line| line["bytes"].as_u64()).collect();
    assert!(bytes.contains(&80) && bytes.contains(&40), "{bytes:?}");
    assert!(bytes.iter().all(|bytes| [80, 40].contains(bytes)), "{bytes:?}");
}
