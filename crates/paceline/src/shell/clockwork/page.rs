//! The page of the clock of a host's node, in a file from which the other processes of the host read it.
//!
//! All processes of a host share the raw clock, so they need only the map from it to UTC. The file names the boot of the
//! host, because the raw clock begins anew with each, and the time that the host was suspended until then.

use crate::shell::clock;
use paceline_time::ClockStatus;
use paceline_time::clock::page::{ClockPage, WORDS};
use paceline_time::clock::service::HostClocks;
use std::path::{Path, PathBuf};

/// The name of the file in the runtime folder.
const FILE: &str = "clock";
/// The first bytes of the file.
const MAGIC: &[u8; 8] = b"PACECLK1";
/// The node that wrote the file writes it once per second. After this time it has ended, in nanoseconds.
const SILENT_AFTER: u64 = 5_000_000_000;
/// A larger change of the time that the host was suspended is a suspend, in nanoseconds.
const SUSPEND_MIN: u64 = 50_000_000;

/// Returns the identifier of this boot of the host; empty where the system has none.
fn boot() -> Vec<u8> {
    std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// The file, for the process that writes it.
#[derive(Debug)]
pub(super) struct PageFile {
    file: PathBuf,
    next: PathBuf,
    boot: Vec<u8>,
}

impl PageFile {
    /// The file in the folder `dir`.
    pub(super) fn new(dir: &Path) -> Self {
        Self { file: dir.join(FILE), next: dir.join("clock.next"), boot: boot() }
    }

    /// Writes the page.
    pub(super) fn write(&mut self, page: &ClockPage, now: HostClocks) {
        let head = [now.raw, now.boot.wrapping_sub(now.raw)];
        let words = head.into_iter().chain(page.to_words()).flat_map(u64::to_be_bytes);
        let bytes: Vec<u8> = MAGIC.iter().copied().chain(words).chain(self.boot.clone()).collect();
        let written = std::fs::write(&self.next, bytes);
        if let Err(error) = written.and_then(|()| std::fs::rename(&self.next, &self.file)) {
            let file = self.file.display();
            crate::warn_limited!(
                "clock: cannot write {file}: {error}; other processes of this host have no bound"
            );
        }
    }

    /// Removes the file.
    pub(super) fn remove(&self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

/// The file, for a process that reads it.
#[derive(Debug)]
pub(super) struct PageReader {
    file: PathBuf,
    boot: Vec<u8>,
}

impl PageReader {
    /// The file in the folder `dir`.
    pub(super) fn new(dir: &Path) -> Self {
        Self { file: dir.join(FILE), boot: boot() }
    }

    /// Reads the page; `None` if there is none of this boot.
    pub(super) fn read(&self) -> Option<ClockPage> {
        parse(&std::fs::read(&self.file).ok()?, &self.boot, clock::hosts())
    }
}

fn parse(bytes: &[u8], boot: &[u8], now: HostClocks) -> Option<ClockPage> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (words, rest) = rest.split_at_checked((WORDS + 2) * 8)?;
    if rest != boot {
        return None;
    }
    let mut words = words.as_chunks::<8>().0.iter().map(|word| u64::from_be_bytes(*word));
    let (written, suspended) = (words.next()?, words.next()?);
    let mut page = [0; WORDS];
    page.iter_mut().zip(words).for_each(|(to, from)| *to = from);
    let page = ClockPage::from_words(page);
    if page.status() == ClockStatus::Unsynchronised {
        return Some(page);
    }
    // The host was suspended after the page was written, or its clocks are not those of the page.
    let slept = now.boot.wrapping_sub(now.raw);
    if slept.abs_diff(suspended) > SUSPEND_MIN + now.raw.saturating_sub(written) / 1_000 {
        return Some(page.with_status(ClockStatus::Disrupted));
    }
    let is_silent = now.raw.saturating_sub(written) > SILENT_AFTER;
    let holds = is_silent && page.status() == ClockStatus::Synchronised;
    Some(if holds { page.with_status(ClockStatus::Holdover) } else { page })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(page: &ClockPage, written: u64) -> Vec<u8> {
        let head = [written, 7];
        let words = head.into_iter().chain(page.to_words()).flat_map(u64::to_be_bytes);
        MAGIC.iter().copied().chain(words).chain(*b"boot").collect()
    }

    fn at(raw: u64, slept: u64) -> HostClocks {
        HostClocks { raw, boot: raw + 7 + slept, wall: 0 }
    }

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_page_of_another_boot_or_after_a_suspend_has_no_bound() {
        let page = ClockPage::default().with_status(ClockStatus::Synchronised);
        let bytes = bytes(&page, 100 * S);
        assert_eq!(parse(&bytes, b"boot", at(101 * S, 0)), Some(page));
        assert_eq!(parse(&bytes, b"other", at(101 * S, 0)), None);
        let status = |now| parse(&bytes, b"boot", now).unwrap().status();
        assert_eq!(status(at(101 * S, S)), ClockStatus::Disrupted);
        assert_eq!(status(at(106 * S, 0)), ClockStatus::Holdover);
    }

    #[test]
    fn any_other_file_is_no_page() {
        let whole = bytes(&ClockPage::default(), 0);
        for length in 0..whole.len() - 4 {
            assert_eq!(parse(&whole[..length], b"", at(0, 0)), None, "{length}");
        }
        let random: Vec<u8> =
            MAGIC.iter().copied().chain((0..112_u8).map(|at| at.wrapping_mul(37))).collect();
        let page = parse(&random, b"", at(5, 5)).unwrap();
        let _ = page.read(u64::MAX, || 0);
        let _ = page.read(0, || 0);
    }
}
