//! A clock that follows that of the host's node.

use super::page::PageReader;
use crate::time::Clock;
use paceline_time::clock::page::ClockPage;
use std::path::Path;

/// Follows the clock of the host's node through its file.
#[derive(Debug)]
pub(crate) struct Follower {
    reader: PageReader,
    clock: Clock,
    last: Option<ClockPage>,
}

impl Follower {
    /// Follows the clock whose page is in the folder `dir`.
    pub(crate) fn new(dir: &Path, clock: Clock) -> Self {
        let mut follower = Self { reader: PageReader::new(dir), clock, last: None };
        follower.tick();
        follower
    }

    /// Reads the page again. Call it four times per second.
    pub(crate) fn tick(&mut self) {
        let page = self.reader.read();
        if page == self.last {
            return;
        }
        if let Some(page) = &page {
            self.clock.state().publish(page);
            self.clock.state().report().is_follower = true;
        }
        // Without a file, the last page remains correct: its bound grows.
        self.last = page.or(self.last);
    }
}
