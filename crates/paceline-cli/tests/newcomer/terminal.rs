//! A terminal of the newcomer's: one command, and what it shows.

use crate::host::{Host, LIMIT, Running};
use rustix::process::Signal;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A command that runs, and the file that has everything it says.
pub(crate) struct Terminal {
    running: Running,
    shown: PathBuf,
}

impl Terminal {
    /// Types a command.
    pub(crate) fn open(host: &Host, name: &str, words: &[String]) -> Self {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let shown = host.path(&format!("{name}.txt"));
        let out = File::create(&shown).expect("a file");
        let both = out.try_clone().expect("a file");
        let child = host.command(&words).stdout(out).stderr(both).spawn();
        Self { running: Running::unread(child.expect("it starts")), shown }
    }

    /// All that it has shown so far.
    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(&self.shown).expect("text")
    }

    /// Waits until it shows this.
    pub(crate) fn see(&self, part: &str) -> String {
        self.see_more(0, part)
    }

    /// Waits until it shows this in what comes after the first `from` bytes.
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

    /// Waits for its end; it ends with this code, and what it showed is given.
    pub(crate) fn ends(mut self, code: i32) -> String {
        let status = self.running.status();
        let text = self.text();
        assert_eq!(status.code(), Some(code), "{text}");
        assert!(!text.contains("panicked"), "{text}");
        text
    }

    /// Presses Ctrl-C.
    pub(crate) fn interrupt(self, code: i32) -> String {
        self.running.signal(Signal::INT);
        self.ends(code)
    }
}
