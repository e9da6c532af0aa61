//! A film with pictures and sound that grows by fragments. Players accept it after each of them, even if the command is killed.

use crate::outfile;
use anyhow::{Context as _, anyhow};
use paceline::{Kind, Node, Sample, Subscriber, Tag};
use paceline_media::film::{FilmFormat, FilmWriter};
use paceline_media::{Format, Size};
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
/// Most files of one recording: a publisher may change the size of its pictures at any time.
const FILES_MAX: u32 = 1_000;
/// The tracks.
const MAIN: usize = 0;
const SOUND: usize = 1;

/// The type of a track's samples. Players expect one per file.
#[derive(Clone, Debug, PartialEq)]
struct TrackForm {
    encoding: String,
    /// The size of pictures.
    size: Option<Size>,
}

impl TrackForm {
    /// Returns the type from a sample at which decoding can start; `None` for others.
    fn of(delivery: &Sample) -> Option<Self> {
        let encoding = delivery.encoding.as_str();
        let size = match (Format::codec_of(encoding), encoding) {
            (Some(_), _) if delivery.kind != Kind::VideoI => return None,
            (Some(codec), _) => Some(codec.info(&delivery.payload).ok()??.size),
            (None, "image/jpeg") => Some(Format::Jpeg.picture_size(&delivery.payload).ok()?),
            (None, _) => None,
        };
        Some(Self { encoding: encoding.to_owned(), size })
    }
}

impl std::fmt::Display for TrackForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.encoding)?;
        self.size.map_or(Ok(()), |size| write!(f, " of {size}"))
    }
}

/// A film, which continues in another file when the type or the size of its samples changes.
pub(crate) struct FilmFile {
    file: File,
    path: PathBuf,
    /// The name of the first file, the number of the present one, and whether existing files are replaced.
    first: PathBuf,
    number: u32,
    force: bool,
    /// The types of the tracks.
    forms: [Option<TrackForm>; 2],
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
    pub(super) fn new(
        file: File,
        path: &Path,
        format: FilmFormat,
        force: bool,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            file,
            path: path.to_owned(),
            first: path.to_owned(),
            number: 1,
            force,
            forms: [None, None],
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
        if let Some(form) = TrackForm::of(delivery)
            && let Some(before) = self.forms.get_mut(track)
        {
            let changes = before.as_ref().is_some_and(|before| *before != form);
            *before = Some(form.clone());
            if changes {
                self.go_on(&delivery.tag, &form)?;
            }
        }
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

    /// Ends the present file, and goes on in the next one.
    fn go_on(&mut self, tag: &Tag, form: &TrackForm) -> anyhow::Result<()> {
        self.part(true)?;
        let before = self.path.clone();
        self.file = loop {
            self.number += 1;
            if self.number > FILES_MAX {
                return Err(anyhow!(
                    "--out {}: its samples changed {FILES_MAX} times, which is the limit of files",
                    self.first.display()
                ));
            }
            self.path = numbered(&self.first, self.number);
            // A recording that runs must not end because of an earlier one.
            if self.force || !self.path.exists() {
                break outfile::create("--out", &self.path, self.force)?;
            }
        };
        show::note(&format!(
            "--out {}: the samples of {tag} are {form} now, and go on in {}",
            before.display(),
            self.path.display()
        ));
        self.writer = FilmWriter::new(self.format, 1 + usize::from(self.sound.is_some()))?;
        (self.bytes, self.began, self.noted, self.alone) = (0, None, 0, false);
        Ok(())
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

/// Returns the name of a further file, such as `drive-2.mp4` for `drive.mp4`.
fn numbered(first: &Path, number: u32) -> PathBuf {
    let stem = first.file_stem().unwrap_or_default().to_string_lossy();
    let end = first.extension().unwrap_or_default().to_string_lossy();
    first.with_file_name(format!("{stem}-{number}.{end}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_files_have_numbers_before_the_ending() {
        for (first, second) in
            [("drive.mp4", "drive-2.mp4"), ("/a/b.c/run.1.mkv", "/a/b.c/run.1-2.mkv")]
        {
            assert_eq!(numbered(Path::new(first), 2), Path::new(second));
        }
    }
}
