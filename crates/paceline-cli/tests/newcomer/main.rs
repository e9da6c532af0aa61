//! A new user's first session: the demo, two terminals, every command in the README, its Rust and Python
//! examples, a recording and its replay. Every step is documented, and all succeed.
//!
//! There is one test in a separate binary: the demo checks rates and must run alone.
#![cfg(test)]

#[path = "../cli/host.rs"]
#[expect(dead_code, reason = "the other tests use more of it")]
mod host;
mod programs;
mod readme;
mod terminal;

use host::Host;
use readme::Readme;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use terminal::Terminal;

/// The program under test.
const BINARY: &str = env!("CARGO_BIN_EXE_paceline");

#[test]
fn every_step_of_the_readme_works() {
    let mut readme = Readme::read();
    the_demo();
    the_world();
    let host = Host::new();
    let (publisher, subscriber) = two_terminals(&host, &mut readme);
    looking(&host, &mut readme, &subscriber);
    recording(&host, &mut readme);
    stopping(publisher, subscriber);
    replaying(&host, &readme);
    programs::in_rust(&host, &readme);
    programs::in_python(&host, &readme);
    let ls = done(&host, "ls", &words("ls"));
    assert!(ls.starts_with("no other node answers"), "nothing is left running: {ls}");
    readme.all_was_done();
}

fn words(command: &str) -> Vec<String> {
    command.split(' ').map(str::to_owned).collect()
}

/// Runs a command that must end successfully; returns its output.
fn done(host: &Host, name: &str, words: &[String]) -> String {
    Terminal::open(host, name, words).ends(0)
}

/// Runs the town of shared objects: the contract of the observer behind the thin link is granted and kept.
fn the_world() {
    let output = done(&Host::new(), "world", &words("demo world --headless --json --duration 4s"));
    let last = output.lines().last().expect("a summary");
    assert!(last.contains(r#""ok":true"#) && last.contains(r#""contract":"granted""#), "{last}");
}

/// Runs `cargo xtask demo` without the build: three processes, two links, a page. After Ctrl-C every
/// subscriber has received its requested service.
fn the_demo() {
    let host = Host::new();
    let demo = Terminal::open(&host, "demo", &words("demo --json --http 127.0.0.1:0"));
    let output = demo.see("in another terminal: ");
    let address = output.split("http://").nth(1).and_then(|rest| rest.split('/').next());
    let address = address.expect("an address");
    let mut page = TcpStream::connect(address).expect("the page is served");
    let asked = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    page.write_all(asked.as_bytes()).expect("it listens");
    let mut answer = String::new();
    page.read_to_string(&mut answer).expect("it answers");
    assert!(answer.contains(" 200 OK") && answer.contains("Paceline"), "{answer}");
    demo.see("\"t_s\":5.");
    the_printed_list(&host, &output);
    let text = demo.interrupt(0);
    let lines = text.lines().filter(|line| line.starts_with('{'));
    let lines: Vec<serde_json::Value> =
        lines.map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(lines.len() >= 6 && lines[0]["rows"].is_array(), "{text}");
    let summary = &lines.last().expect("a summary")["summary"];
    assert_eq!(summary["ok"], true, "{summary}");
    let rows = summary["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row["ok"] == true && row["refused"] == serde_json::json!([])));
    assert_eq!(rows[2]["width"], 160);
    let links = summary["links"].as_array().expect("links");
    assert!(links.iter().any(|link| link["capacity_bits_per_s"] == 2_000_000));
}

/// Runs the command that the demo prints for another terminal, and the one that `ls` prints next to a demo.
fn the_printed_list(host: &Host, output: &str) {
    let (_, command) = output.split_once("in another terminal: ").expect("a command");
    let command = command.lines().next().expect("a line");
    assert!(command.starts_with(BINARY), "{command}");
    let args = words(command);
    let list = done(host, "demo list", &args[1..]);
    for part in ["robot ", "console ", "operator ", "robot/camera", "5 Hz at 160x120"] {
        assert!(list.contains(part), "{part}: {list}");
    }
    let alone = done(host, "list", &words("ls"));
    assert!(alone.starts_with("no other node answers") && alone.contains(command), "{alone}");
}

/// Runs `pub` and `sub` as in the README.
fn two_terminals(host: &Host, readme: &mut Readme) -> (Terminal, Terminal) {
    let publisher = Terminal::open(host, "pub", &readme.command("paceline pub "));
    publisher.see("publishing a/b: test card 320x240 at 30 Hz");
    let subscriber = Terminal::open(host, "sub", &readme.command("paceline sub a/b --max-hz "));
    subscriber.see(" Hz  160x120 image/jpeg  age p50 ");
    (publisher, subscriber)
}

/// Runs the commands that observe, query, change and pull.
fn looking(host: &Host, readme: &mut Readme, subscriber: &Terminal) {
    let hz = Terminal::open(host, "watch", &readme.command("paceline watch "));
    hz.see("[a/b]\naverage rate: ");
    let output = hz.interrupt(0);
    assert!(
        output.contains("asked: all | granted: ") && output.contains("delivered: "),
        "{output}"
    );
    readme.contains("`--print`");
    let echo = Terminal::open(host, "print", &words("watch a/** --print"));
    echo.see("320x240 image/jpeg, ");
    echo.interrupt(0);
    let top = Terminal::open(host, "top", &readme.command("paceline top"));
    top.see("10 Hz at 160x120");
    top.interrupt(0);
    let ls = done(host, "ls", &readme.command("paceline ls"));
    for part in
        ["PUBLISHERS\n", "\na/b  pub-b ", "\na/b      sub-b  10 Hz at 160x120", "\nBUFFERS\n"]
    {
        assert!(ls.contains(part), "{part}: {ls}");
    }
    let ask = done(host, "dry run", &readme.command("paceline sub a/b --within "));
    assert!(ask.contains("a/b of pub-b: yes, as best effort: local, nothing limits it"), "{ask}");
    let before = subscriber.text().len();
    let set = done(host, "set", &readme.command("paceline set "));
    assert!(set.contains("10 Hz at 160x120, best effort -> 5 Hz at 160x120, best effort"), "{set}");
    subscriber.see_more(before, "the request changed: 5 Hz at 160x120");
    let pull = done(host, "pull", &readme.command("paceline pull "));
    assert!(pull.contains("found 10, delivered 10, "), "{pull}");
}

/// Records until Ctrl-C; a second recording to the same file is rejected with a fix.
fn recording(host: &Host, readme: &mut Readme) {
    let record = readme.command("paceline record ");
    let recorder = Terminal::open(host, "record", &record);
    recorder.see("2 s  ");
    recorder.interrupt(0);
    let again = Terminal::open(host, "again", &record).ends(2);
    assert!(again.contains("give --force to replace it"), "{again}");
    readme.contains("`judge` checks it");
    let judge = done(host, "judge", &words("judge run.mcap"));
    assert!(judge.contains("\na/b  best_effort"), "{judge}");
}

/// Stops the publisher first: the subscriber reports it and keeps waiting.
fn stopping(publisher: Terminal, subscriber: Terminal) {
    let output = publisher.interrupt(0);
    assert!(output.contains(" Hz  published "), "{output}");
    subscriber.see("no publisher on a/b any more; still waiting (Ctrl-C ends)");
    subscriber.see("no new samples");
    let output = subscriber.interrupt(0);
    let last = output.lines().last().expect("a summary");
    assert!(
        last.starts_with("delivered ") && last.ends_with("; late 0; missing 0; dropped 0"),
        "{last}"
    );
}

/// Replays the recording to a waiting subscriber.
fn replaying(host: &Host, readme: &Readme) {
    readme.contains("`replay` publishes it again");
    let waiting = Terminal::open(host, "waiting", &words("sub a/**"));
    waiting.see("no publisher on a/** yet; no tag is published; still waiting (Ctrl-C ends)");
    let replay = done(host, "replay", &words("replay run.mcap"));
    assert!(replay.contains("\na/b: ") && replay.contains(" dropped 0"), "{replay}");
    waiting.see(" Hz  320x240 image/jpeg  age p50 ");
    waiting.interrupt(0);
}
