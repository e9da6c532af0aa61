//! The progress file: for each driver, the number of seeds that were run, counted from 0.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{fs, io};

/// The half-open range of seeds `from..to`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

#[derive(Clone, Debug, Default)]
struct Seeds {
    /// The value of `done` when this run began.
    first: u64,
    /// All seeds below this one were run.
    done: u64,
    /// All seeds below this one were assigned to a thread.
    taken: u64,
    /// Finished blocks that have an unfinished block below them, as `from` to `to`.
    ahead: BTreeMap<u64, u64>,
}

/// The progress of every driver.
#[derive(Debug)]
pub(crate) struct Progress {
    file: PathBuf,
    seeds: BTreeMap<&'static str, Seeds>,
}

impl Progress {
    /// Reads the file. A missing file counts as empty, and lines with an unknown driver are ignored.
    pub(crate) fn read(file: PathBuf, names: &[&'static str]) -> io::Result<Self> {
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let done: BTreeMap<&str, u64> = text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(name, done)| Some((name, done.parse().ok()?)))
            .collect();
        let seeds = names.iter().map(|&name| {
            let done = done.get(name).copied().unwrap_or(0);
            (name, Seeds { first: done, done, taken: done, ahead: BTreeMap::new() })
        });
        Ok(Self { file, seeds: seeds.collect() })
    }

    /// Assigns the next `count` seeds of a driver.
    pub(crate) fn take(&mut self, name: &'static str, count: u64) -> Done {
        let seeds = self.seeds.entry(name).or_default();
        let from = seeds.taken;
        seeds.taken = from.saturating_add(count);
        Done { from, to: seeds.taken }
    }

    /// Records that the seeds of a block were run.
    pub(crate) fn finish(&mut self, name: &'static str, Done { from, to }: Done) {
        let seeds = self.seeds.entry(name).or_default();
        seeds.ahead.insert(from, to);
        while let Some(to) = seeds.ahead.remove(&seeds.done) {
            seeds.done = to;
        }
    }

    /// Writes the file atomically: to a new file, which then replaces the old one.
    pub(crate) fn write(&self) -> io::Result<()> {
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder)?;
        }
        let line = |(name, seeds): (&&str, &Seeds)| format!("{name} {}\n", seeds.done);
        let text: String = self.seeds.iter().map(line).collect();
        let new = self.file.with_extension("new");
        fs::write(&new, text)?;
        fs::rename(&new, &self.file)
    }

    /// Returns the number of scenarios finished in this run.
    pub(crate) fn now(&self) -> u64 {
        self.seeds.values().map(|seeds| seeds.done - seeds.first).sum()
    }

    /// Formats the progress as a table.
    pub(crate) fn table(&self) -> String {
        let mut text = format!("{:<26} {:>12} {:>12}  seeds\n", "discipline", "now", "in all");
        for (name, seeds) in &self.seeds {
            let (now, all) = (seeds.done - seeds.first, seeds.done);
            let _ = writeln!(text, "{name:<26} {now:>12} {all:>12}  {} to {all}", seeds.first);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_continues_at_the_first_gap_of_the_last_one() {
        let folder = std::env::temp_dir().join(format!("paceline-long-{}", std::process::id()));
        let file = folder.join("progress");
        let mut progress = Progress::read(file.clone(), &["a", "b"]).unwrap();
        let blocks = [progress.take("a", 10), progress.take("a", 10), progress.take("a", 10)];
        progress.finish("a", blocks[0]);
        progress.finish("a", blocks[2]); // Block 1 is still missing, as after an interruption.
        progress.write().unwrap();
        let mut again = Progress::read(file, &["a", "b", "c"]).unwrap();
        assert_eq!((again.take("a", 5).from, again.take("b", 5).from), (10, 0));
        assert_eq!((progress.now(), again.now()), (10, 0));
        assert!(progress.table().contains("0 to 10"), "{}", progress.table());
        fs::remove_dir_all(folder).unwrap();
    }
}
