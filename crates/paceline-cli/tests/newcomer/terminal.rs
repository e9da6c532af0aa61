//! A terminal of a new user: one command and its output.

use crate::host::{Host, LIMIT, Running};
use rustix::process::Signal;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A running command, and the file that collects its output.
pub(crate) struct Terminal {
    running: Running,
    shown: PathBuf,
}

impl Terminal {
    /// Starts a command.
    pub(crate) fn open(host: &Host, name: &str, words: &[String]) -> Self {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let shown = host.path(&format!("{name}.txt"));
        let out = File::create(&shown).expect("a file");
        let both = out.try_clone().expect("a file");
        let child = host.command(&words).stdout(out).stderr(both).spawn();
        Self { running: Running::unread(child.expect("it starts")), shown }
    }

    /// Returns the output so far.
    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(&self.shown).expect("text")
    }

    /// Waits until the output contains `part`.
    pub(crate) fn see(&self, part: &str) -> String {
        self.see_more(0, part)
    }

    /// Waits until the output after the first `from` bytes contains `part`.
    pub(crate) fn see_more(&self, from: usize, part: &str) -> String {
        let until = Instant::now() + LIMIT;
        loop {
            let text = self.text();
            if text.get(from..).is_some_and(|new| new.contains(part)) {
                return text;
            }
            assert!(Instant::now() < until, "no '{part}' in:\n{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the command ends; checks its exit code and returns its output.
    pub(crate) fn ends(mut self, code: i32) -> String {
        let status = self.running.status();
        let text = self.text();
        assert_eq!(status.code(), Some(code), "{text}");
        assert!(!text.contains("panicked"), "{text}");
        text
    }

    /// Presses Ctrl-C and waits for the exit code.
    pub(crate) fn interrupt(self, code: i32) -> String {
        self.running.signal(Signal::INT);
        self.ends(code)
    }
}
