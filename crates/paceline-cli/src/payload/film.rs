//! A film with pictures and sound that grows by fragments. Players accept it after each of them, even if the command is killed.

use anyhow::{Context as _, anyhow};
use paceline::{Node, Sample, Subscriber, Tag};
use paceline_media::film::{FilmFormat, FilmWriter};
use paceline_tool::{exit, show};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The time between two parts. A second may be lost when the command is killed.
const PART: Duration = Duration::from_millis(500);
/// The time before the first part: it shows how far presentation is behind decoding.
const FIRST: Duration = Duration::from_secs(1);
/// The longest wait for the first sample of the other track.
const PATIENCE: Duration = Duration::from_secs(3);
/// The tracks.
const MAIN: usize = 0;
const SOUND: usize = 1;

/// A film.
pub(crate) struct FilmFile {
    file: File,
    path: PathBuf,
    format: FilmFormat,
    writer: FilmWriter,
    sound: Option<Subscriber>,
    /// The tag of the first track: a film has one.
    tag: Option<Tag>,
    bytes: u64,
    /// The arrival of the first sample, and the time of the next part.
    began: Option<Instant>,
    next: Instant,
    /// The samples left out that were noted.
    noted: u64,
    alone: bool,
}

/// Returns the format of a film by its name.
pub(super) fn format_of(end: &str) -> Option<FilmFormat> {
    match end {
        "mp4" | "m4v" | "mov" => Some(FilmFormat::Mp4),
        "mkv" => Some(FilmFormat::Matroska),
        "ts" => Some(FilmFormat::MpegTs),
        _ => None,
    }
}

impl FilmFile {
    /// Returns the film in a new file.
    pub(super) fn new(file: File, path: &Path, format: FilmFormat) -> anyhow::Result<Self> {
        Ok(Self {
            file,
            path: path.to_owned(),
            format,
            writer: FilmWriter::new(format, 1)?,
            sound: None,
            tag: None,
            bytes: 0,
            began: None,
            next: Instant::now(),
            noted: 0,
            alone: false,
        })
    }

    /// Adds the sound of another tag.
    pub(super) fn hear(
        &mut self,
        node: &Node,
        tag: &Tag,
        within: Option<Duration>,
    ) -> anyhow::Result<()> {
        let mut builder = node.subscriber(tag.as_str()).queue(4_096);
        if let Some(bound) = within {
            builder = builder.within(bound);
        }
        self.sound = Some(builder.declare().map_err(exit::usage)?);
        self.writer = FilmWriter::new(self.format, 2)?;
        Ok(())
    }

    /// Adds a sample of the first track.
    pub(super) fn write(&mut self, delivery: &Sample) -> anyhow::Result<()> {
        match &self.tag {
            Some(tag) if *tag != delivery.tag => {
                return Err(anyhow!(
                    "--out {}: a film has the pictures of one tag, and {tag} and {} match; subscribe to one of them",
                    self.path.display(),
                    delivery.tag
                ));
            }
            Some(_) => {}
            None => self.tag = Some(delivery.tag.clone()),
        }
        self.push(MAIN, delivery)
    }

    fn push(&mut self, track: usize, delivery: &Sample) -> anyhow::Result<()> {
        if self.began.is_none() {
            self.began = Some(Instant::now());
            self.next = Instant::now() + FIRST;
        }
        let captured = i64::try_from(delivery.captured.nanos).unwrap_or(i64::MAX);
        let (encoding, payload) = (delivery.encoding.as_str(), &delivery.payload);
        let pushed = self.writer.push(track, encoding, captured, payload);
        let here = || {
            format!("--out {}: sample {} of {}", self.path.display(), delivery.seq, delivery.tag)
        };
        pushed.with_context(here)
    }

    /// Takes the sound that has arrived, and writes the next part if it is due.
    pub(super) fn poll(&mut self) -> anyhow::Result<()> {
        while let Some(sample) = self.sound.as_mut().and_then(Subscriber::try_recv) {
            self.push(SOUND, &sample)?;
        }
        let now = Instant::now();
        if now < self.next {
            return Ok(());
        }
        self.next = now + PART;
        let waited = self.began.is_some_and(|began| began.elapsed() > PATIENCE);
        if !self.writer.is_ready() && !waited {
            return Ok(());
        }
        if !self.writer.is_ready() && !self.alone {
            self.alone = true;
            show::note(&format!(
                "--out {}: one of its tracks had no sample for {} s; the film is written without it",
                self.path.display(),
                PATIENCE.as_secs()
            ));
        }
        self.part(false)
    }

    /// Writes the rest.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        while let Some(sample) = self.sound.as_mut().and_then(Subscriber::try_recv) {
            self.push(SOUND, &sample)?;
        }
        self.part(true)
    }

    fn part(&mut self, all: bool) -> anyhow::Result<()> {
        let here = || format!("--out {}", self.path.display());
        let part = self.writer.part(all).with_context(here)?;
        let left_out = self.writer.left_out();
        if left_out > self.noted {
            self.noted = left_out;
            show::note(&format!(
                "--out {}: {left_out} samples are left out: those before the first key picture, or of a track that began after the film",
                self.path.display()
            ));
        }
        if let Err(error) = self.file.write_all(&part).and_then(|()| self.file.flush()) {
            // Truncates to the whole parts; pipes do not support it.
            let _ = self.file.set_len(self.bytes);
            return Err(anyhow!(
                "--out {}: cannot write: {error}; the file contains {} bytes that can be played; free some space or give \
                 another --out",
                self.path.display(),
                self.bytes
            ));
        }
        self.bytes += part.len() as u64;
        Ok(())
    }
}
