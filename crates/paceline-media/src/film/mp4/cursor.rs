//! A place in the sample tables of a track.

use super::tables::Tables;

/// The next sample of a track's tables.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cursor {
    /// Its number, from 0.
    sample: u32,
    decode: i64,
    delta: Run,
    offset: Run,
    /// The number of its chunk and of the run of such chunks.
    chunk: usize,
    run: usize,
    /// The samples of the chunk before it, and their bytes.
    within: u32,
    bytes: u64,
    key: usize,
}

/// A place in a table of repeated values.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    entry: usize,
    within: u32,
}

/// A sample as the tables list it, in the time of the media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) number: u32,
    pub(super) at: u64,
    pub(super) size: u32,
    pub(super) decode: i64,
    pub(super) shown: i64,
    pub(super) duration: i64,
    pub(super) key: bool,
    pub(super) entry: usize,
}

impl Run {
    /// Steps to the next sample, whose value is repeated `count` times.
    fn step(&mut self, count: Option<u32>, steps: u32) {
        self.within = self.within.saturating_add(steps);
        if count.is_some_and(|count| self.within >= count) {
            (self.entry, self.within) = (self.entry + 1, 0);
        }
    }
}

impl Cursor {
    /// Returns the next sample; `None` at the end of a table.
    pub(super) fn next(&mut self, tables: &Tables) -> Option<Listed> {
        let count = tables.count();
        if self.sample >= count {
            return None;
        }
        let (in_chunk, entry) = self.chunk(tables)?;
        let size = tables.size(self.sample);
        let at = tables.chunks.get(self.chunk)?.checked_add(self.bytes)?;
        let frames = tables.frames_max.min(in_chunk - self.within).min(count - self.sample).max(1);
        // The last delta holds for all further samples.
        let last = tables.deltas.len().saturating_sub(1);
        let delta =
            tables.deltas.get(self.delta.entry.min(last)).map_or(0, |entry| entry.sample_delta);
        let offsets = tables.offsets.get(self.offset.entry);
        let offset = offsets.map_or(0, |entry| entry.sample_offset);
        let key = self.is_key(tables);
        let duration = i64::from(delta).saturating_mul(frames.into());
        let listed = Listed {
            number: self.sample,
            at,
            size: size.saturating_mul(frames),
            decode: self.decode,
            shown: self.decode.saturating_add(offset),
            duration,
            key,
            entry,
        };
        self.sample += frames;
        self.decode = self.decode.saturating_add(duration);
        self.delta
            .step(tables.deltas.get(self.delta.entry).map(|entry| entry.sample_count), frames);
        self.offset.step(offsets.map(|entry| entry.sample_count), frames);
        self.within += frames;
        self.bytes = self.bytes.saturating_add(u64::from(listed.size));
        Some(listed)
    }

    /// Steps to the chunk of the next sample. Returns its number of samples, and the position of their description.
    fn chunk(&mut self, tables: &Tables) -> Option<(u32, usize)> {
        loop {
            let run = tables.runs.get(self.run)?;
            let next = tables.runs.get(self.run + 1);
            let first = |chunk: u32| {
                usize::try_from(chunk).map_or(usize::MAX, |first| first.saturating_sub(1))
            };
            if next.is_some_and(|next| self.chunk >= first(next.first_chunk)) {
                self.run += 1;
                continue;
            }
            if self.within < run.samples_per_chunk {
                let entry = first(run.sample_description_index);
                return Some((run.samples_per_chunk, entry));
            }
            tables.chunks.get(self.chunk)?;
            (self.chunk, self.within, self.bytes) = (self.chunk + 1, 0, 0);
        }
    }

    fn is_key(&mut self, tables: &Tables) -> bool {
        let Some(keys) = &tables.keys else { return true };
        // Numbers count from 1.
        while keys.get(self.key).is_some_and(|key| *key <= self.sample) {
            self.key += 1;
        }
        keys.get(self.key).is_some_and(|key| *key == self.sample.saturating_add(1))
    }
}
