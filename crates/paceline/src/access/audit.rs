//! The audit log: one JSON object per line, in a file that is rotated.

use paceline_proto::NodeId;
use paceline_proto::text::escape;
use serde_json::{Map, Value};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The size at which the file is renamed to `FILE.1`, replacing the previous one.
const ROTATE_AT: u64 = 16 << 20;
/// The entries that wait for the disk. Further ones are counted as lost.
const WAITING_MAX: usize = 4_096;

/// The entries about strangers per second.
const STRANGERS_MAX: u32 = 50;

/// One entry.
#[derive(Clone, Debug)]
pub(crate) struct Entry(Map<String, Value>);

impl Entry {
    /// Returns an entry about `event` at the current time.
    pub(crate) fn new(event: &'static str) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let micros = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
        Self(Map::new()).number("time_us", micros).text("event", event)
    }

    /// Adds a text. Control characters are escaped.
    pub(crate) fn text(mut self, name: &'static str, text: &str) -> Self {
        self.0.insert(name.to_owned(), escape(text).to_string().into());
        self
    }

    /// Adds a node id.
    pub(crate) fn node(self, name: &'static str, node: NodeId) -> Self {
        self.text(name, &node.to_string())
    }

    /// Adds a number.
    pub(crate) fn number(mut self, name: &'static str, value: u64) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }
}

/// A handle to the audit log; without a file it records nothing. The clones share the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Audit(Option<Sender>);

#[derive(Clone, Debug)]
struct Sender {
    file: PathBuf,
    entries: SyncSender<Entry>,
    lost: Arc<AtomicU64>,
    strangers: Arc<Mutex<StrangerRate>>,
}

/// The entries about strangers in the current second.
#[derive(Debug, Default)]
struct StrangerRate {
    second: u64,
    entries: u32,
}

impl Audit {
    /// Opens the log and starts its thread, which ends with the last handle.
    ///
    /// # Errors
    /// Returns a description with the file.
    pub(crate) fn open(file: &Path) -> Result<Self, String> {
        let opened = open(file).map_err(|error| format!("audit {}: {error}", file.display()))?;
        let (entries, waiting) = sync_channel(WAITING_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let log = Log { file: file.to_owned(), open: opened, lost: lost.clone(), broken: false };
        let thread = std::thread::Builder::new().name("paceline-audit".to_owned());
        thread.spawn(move || log.write_all(&waiting)).map_err(|error| error.to_string())?;
        let (file, strangers) = (file.to_owned(), Arc::default());
        Ok(Self(Some(Sender { file, entries, lost, strangers })))
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        self.0.as_ref().map(|sender| sender.file.as_path())
    }

    /// Records an entry about somebody without any right. Beyond [`STRANGERS_MAX`] per second they are only counted
    /// as lost, so that nobody pushes older entries out of the log.
    pub(crate) fn note_stranger(&self, entry: Entry) {
        let Some(sender) = &self.0 else { return };
        let passes = {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let mut it = sender.strangers.lock().unwrap_or_else(PoisonError::into_inner);
            if it.second != since.as_secs() {
                *it = StrangerRate { second: since.as_secs(), entries: 0 };
            }
            it.entries += 1;
            it.entries <= STRANGERS_MAX
        };
        if passes {
            self.note(entry);
        } else {
            sender.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records an entry. Never blocks.
    pub(crate) fn note(&self, entry: Entry) {
        if let Some(sender) = &self.0
            && sender.entries.try_send(entry).is_err()
        {
            sender.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn open(file: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    OpenOptions::new().create(true).append(true).mode(0o600).open(file)
}

/// The writing end of the log.
struct Log {
    file: PathBuf,
    open: File,
    lost: Arc<AtomicU64>,
    /// True if the last entry could not be written.
    broken: bool,
}

impl Log {
    fn write_all(mut self, entries: &Receiver<Entry>) {
        while let Ok(entry) = entries.recv() {
            let lost = self.lost.swap(0, Ordering::Relaxed);
            let result = match lost {
                0 => self.write(entry),
                lost => self
                    .write(Entry::new("lost").number("count", lost))
                    .and_then(|()| self.write(entry)),
            };
            match result {
                Ok(()) => self.broken = false,
                Err(error) => {
                    self.lost.fetch_add(lost.saturating_add(1), Ordering::Relaxed);
                    if !self.broken {
                        let file = self.file.display();
                        tracing::warn!("audit {file}: {error}; the lost entries are counted");
                    }
                    self.broken = true;
                }
            }
        }
    }

    fn write(&mut self, entry: Entry) -> std::io::Result<()> {
        if self.open.metadata()?.len() >= ROTATE_AT {
            let mut old = self.file.clone().into_os_string();
            old.push(".1");
            std::fs::rename(&self.file, old)?;
            self.open = open(&self.file)?;
        }
        let mut line = Value::Object(entry.0).to_string();
        line.push('\n');
        self.open.write_all(line.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn strangers_cannot_push_entries_out_of_the_log() {
        let file = std::env::temp_dir().join(format!("paceline-audit-{}", std::process::id()));
        let _ = std::fs::remove_file(&file);
        let audit = Audit::open(&file).unwrap();
        audit.note(Entry::new("joined"));
        for _ in 0..10_000 {
            audit.note_stranger(Entry::new("refused"));
        }
        audit.note(Entry::new("left"));
        let read = || std::fs::read_to_string(&file).unwrap_or_default();
        let begun = Instant::now();
        while !read().contains("left") {
            assert!(begun.elapsed() < Duration::from_secs(10), "{}", read());
            std::thread::sleep(Duration::from_millis(5));
        }
        let refused = read().lines().filter(|line| line.contains("refused")).count();
        assert!((50..1_000).contains(&refused), "{refused}");
        assert!(read().contains("joined") && read().contains("\"lost\""), "{}", read());
        std::fs::remove_file(&file).unwrap();
    }
}
