//! Every command of the documentation runs: to its end, or for a moment until it is interrupted.

use crate::ffmpeg::shell;
use crate::host::{Ended, Host, Running, arg, free_port};
use rustix::process::{Pid, Signal};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The time after which a command that does not end is interrupted.
const MOMENT: Duration = Duration::from_millis(800);
/// The longest time in which an interrupted command ends.
const PATIENCE: Duration = Duration::from_secs(20);

/// Parts of commands that do not run here, and the reasons.
const SKIPPED: &[(&str, &str)] = &[
    ("--config ", "the test of all configurations starts them"),
    ("/etc/paceline", "the tests of certificates and rights have such files"),
    ("sudo ", "it changes the system"),
    ("--calibrate", "it occupies every processor; the test of the calibration runs it"),
    ("ffmpeg", "the test of the recipes runs it"),
    ("node --rtsp", "the tests of players run it"),
    ("--rtsp", "the test of cameras runs it"),
    ("--out desk.264", "its tag has JPEG pictures here; the test of cameras runs it"),
    ("--rtp ", "the test of ffmpeg as a sender runs it"),
    ("--play", "it needs a display"),
    ("film.mp4", "the test of films runs it"),
    ("drive.", "the test of films runs it"),
    ("--objects", "the test of the guide runs it"),
    ("paceline demo", "the test of a newcomer's session runs it"),
    ("--seeds 1..1000", "it takes a minute of a processor"),
];

/// Parts of commands that fail here, with the exit code and a part of the output.
const FAILS: &[(&str, i32, &str)] = &[
    ("paceline clock\n", 3, "no servers"),
    ("paceline clock --json", 3, "\"servers\": []"),
    ("clock --of robot", 3, "no servers"),
    ("--from -1min --to -30s", 3, "expired"),
    ("--from 10s", 2, "--from 10s: the recording lasts"),
    ("trust invite", 130, "interrupted: nobody has joined"),
    ("--within 200\n", 2, "needs a unit"),
];

/// The same for commands whose result depends on the load of the machine: a time server that does not answer is reported
/// at the interrupt.
const MAY_FAIL: &[(&str, i32, &str)] =
    &[("--max-jitter", 3, "--max-jitter"), ("clock --server", 3, "")];

/// Returns the row whose part the command contains.
fn find<'r>(rows: &'r [(&str, i32, &str)], command: &str) -> Option<&'r (&'r str, i32, &'r str)> {
    rows.iter().find(|(part, ..)| command.contains(part))
}

/// Returns the documents for users.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![root.join("README.md")];
    for folder in ["concepts", "guides", "reference"] {
        let entries = std::fs::read_dir(root.join("docs").join(folder)).unwrap();
        found.extend(entries.map(|entry| entry.unwrap().path()));
    }
    found.retain(|path| path.extension().is_some_and(|end| end == "md"));
    found.sort();
    found
}

/// Returns the lines of a document's code blocks that run `paceline`, each once.
fn commands(document: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(document).unwrap().replace("\\\n", " ");
    let (mut found, mut inside) = (Vec::new(), false);
    for line in text.lines().map(str::trim) {
        if line.starts_with("```") {
            inside = !inside;
            continue;
        }
        let line = line.trim_start_matches("$ ").split(" #").next().unwrap_or_default();
        let runs = |part: &str| part.trim_start().starts_with("paceline ");
        let line = format!("{}\n", line.trim_end());
        if inside && line.split(['|', '&']).any(runs) && !found.contains(&line) {
            found.push(line);
        }
    }
    found
}

/// Starts a robot with its streams and an operator's host, and writes the files that commands read.
fn prepare(host: &Host) -> Vec<Running> {
    let files = host.path("files");
    std::fs::create_dir(&files).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    std::os::unix::fs::symlink(root.join("examples"), files.join("examples")).unwrap();
    std::fs::copy(root.join("xtask/src/film.264"), files.join("film.264")).unwrap();
    std::fs::write(files.join("flight.ulg"), crate::telemetry::flight(300)).unwrap();
    for name in ["steps.txt", "states.txt", "commands.txt", "stop.txt"] {
        std::fs::write(files.join(name), "go\n".repeat(40)).unwrap();
    }
    for name in ["map.bin", "image.bin"] {
        std::fs::write(files.join(name), [7; 5_000]).unwrap();
    }
    let link = format!("tcp/127.0.0.1:{}", free_port());
    let (listens, connects) = (
        format!("name=radio,listen={link},capacity=20mbit"),
        format!("name=radio,connect={link},capacity=20mbit"),
    );
    let mast = host.path("mast");
    let mut running = vec![host.start(&["node", "--name", "robot", "--link", &listens])];
    let at_mast = ["--runtime-dir", arg(&mast)];
    let mut start = |args: &[&str]| running.push(host.start(args));
    start(&[&["node", "--name", "mast", "--link", &connects], &at_mast[..]].concat());
    start(&["pub", "robot/camera", "--test-card", "320x240@15", "--history", "100"]);
    start(&["pub", "robot/cmd", "{}", "--repeat", "10hz"]);
    start(&["pub", "robot/velocity", "{}", "--repeat", "10hz"]);
    let asks = ["sub", "robot/camera", "--max-hz", "5", "--size", "160x120", "--within", "1s"];
    start(&asks);
    start(&[&asks, &at_mast[..]].concat());
    host.wait_for_subscriptions(2);
    let done = |args: &[&str]| assert_eq!(host.run(args).code, Some(0), "{args:?}");
    done(&["record", "robot/**", "-o", arg(&files.join("run.mcap")), "--duration", "1s"]);
    let pictures = files.join("camera.mjpeg");
    done(&["sub", "robot/camera", "--count", "5", "--out", arg(&pictures)]);
    running
}

/// Starts a host with exactly one subscription to a camera and one to sound, for commands that change them.
fn prepare_single(host: &Host) -> Vec<Running> {
    let tone = host.path("tone.wav");
    crate::opus::tone(&tone);
    let mut running = vec![host.start(&["node"])];
    let mut start = |args: &[&str]| running.push(host.start(args));
    start(&["pub", "robot/camera", "--test-card", "320x240@15"]);
    start(&["pub", "robot/mic", "--file", arg(&tone), "--loop"]);
    start(&["sub", "robot/camera", "--max-hz", "5"]);
    let mic = host.path("mic.wav");
    start(&["sub", "robot/mic", "--audio", "48000x1", "--bitrate", "32kbit", "--out", arg(&mic)]);
    host.wait_for_subscriptions(2);
    running
}

/// Runs the commands of a document one after the other, each in a new folder with the files.
fn run([host, publishers, single]: &[Host; 3], document: &Path) -> Vec<String> {
    let name = document.file_stem().unwrap().to_str().unwrap();
    let mut wrong = Vec::new();
    for (number, command) in commands(document).iter().enumerate() {
        if SKIPPED.iter().any(|(part, _)| command.contains(part)) {
            continue;
        }
        let dir = host.path(&format!("{name}-{number}"));
        std::fs::create_dir_all(&dir).unwrap();
        for file in std::fs::read_dir(host.path("files")).unwrap() {
            let file = file.unwrap();
            let name = file.file_name().into_string().unwrap();
            let writes =
                ["-o ", "--out ", "> "].iter().any(|to| command.contains(&format!("{to}{name}")));
            if !writes {
                std::os::unix::fs::symlink(file.path(), dir.join(name)).unwrap();
            }
        }
        // Publishers are on a host of their own, and changes need a single subscription.
        let on = match command.split_whitespace().nth(1) {
            Some("pub") => publishers,
            Some("set") => single,
            _ => host,
        };
        let (ended, interrupted) = execute(on, name, &dir, command);
        let (code, output) = (ended.code, ended.stderr.clone() + &ended.text());
        let as_in =
            |(_, with, says): &(&str, i32, &str)| code == Some(*with) && output.contains(says);
        let works = code == Some(0) || interrupted && matches!(code, None | Some(130));
        let is_right = match find(FAILS, command) {
            Some(row) => as_in(row),
            None => works || find(MAY_FAIL, command).is_some_and(as_in),
        };
        if !is_right {
            wrong.push(format!("{name}: {command}: {code:?} {output}"));
        }
    }
    wrong
}

/// Runs a command; returns true behind its result if it was interrupted.
fn execute(host: &Host, document: &str, dir: &Path, command: &str) -> (Ended, bool) {
    let (robot, operator) = (host.path("r2"), host.path("op"));
    let line = command
        .replace("/tmp/robot", arg(&robot))
        .replace("/tmp/operator", arg(&operator))
        .replace("0.0.0.0", "127.0.0.1")
        .replace(":7600", &format!(":{}", free_port()))
        .replace("8470", &free_port().to_string());
    let home = host.path(document);
    let mut shell = shell(host, &line);
    shell.current_dir(dir).env("HOME", &home).process_group(0);
    shell.env("XDG_CONFIG_HOME", home.join("config")).env("XDG_STATE_HOME", home.join("state"));
    let mut running = Running::gathered(shell.spawn().unwrap());
    let group = Pid::from_raw(i32::try_from(running.child().id()).unwrap()).unwrap();
    let until = Instant::now() + MOMENT;
    while Instant::now() < until && running.child().try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let interrupted = running.child().try_wait().unwrap().is_none();
    if interrupted {
        let _ = rustix::process::kill_process_group(group, Signal::INT);
        let until = Instant::now() + PATIENCE;
        while running.child().try_wait().unwrap().is_none() {
            if Instant::now() > until {
                let _ = rustix::process::kill_process_group(group, Signal::KILL);
                panic!("{document}: {command} does not end after an interrupt");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    (running.ended(), interrupted)
}

#[test]
fn every_command_of_the_documentation_runs() {
    let hosts = [Host::new(), Host::new(), Host::new()];
    let _running = (prepare(&hosts[0]), prepare_single(&hosts[2]));
    let documents = documents();
    let all: Vec<String> = documents.iter().flat_map(|document| commands(document)).collect();
    let skipped = |part: &str| all.iter().filter(|command| command.contains(part)).count();
    for (part, reason) in SKIPPED {
        assert!(skipped(part) > 0, "no command has '{part}' any more");
        println!("skipped: {} commands with '{}': {reason}", skipped(part), part.trim());
    }
    for (part, ..) in FAILS {
        assert!(skipped(part) > 0, "no command has '{part}' any more");
    }
    assert!(all.len() > 150, "{}", all.len());
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let hosts = &hosts;
        let mut running = Vec::new();
        for document in &documents {
            running.push(scope.spawn(|| run(hosts, document)));
        }
        running.into_iter().flat_map(|document| document.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}
