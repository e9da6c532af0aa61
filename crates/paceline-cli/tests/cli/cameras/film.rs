//! Films of x264 with four slices per picture, and checks of what arrived of them.

use crate::host::{Host, arg};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A film and its slices.
pub(crate) struct Film {
    file: PathBuf,
    pictures: Vec<Vec<Vec<u8>>>,
}

impl Film {
    /// Codes a film at 25 pictures per second, with a key picture every second.
    pub(crate) fn new(host: &Host, name: &str, (width, height): (u32, u32), pictures: u32) -> Self {
        let file = host.path(&format!("{name}.264"));
        let source = format!("testsrc=size={width}x{height}:rate=25");
        let count = pictures.to_string();
        ffmpeg(&[
            "-f",
            "lavfi",
            "-i",
            &source,
            "-frames:v",
            &count,
            "-c:v",
            "libx264",
            "-pix_fmt",
            "yuv420p",
            "-bf",
            "0",
            "-g",
            "25",
            "-x264-params",
            "slices=4:scenecut=0",
            "-f",
            "h264",
            arg(&file),
        ]);
        let film = Self::of(file);
        assert_eq!(film.pictures.len(), usize::try_from(pictures).unwrap());
        film
    }

    pub(crate) fn joined(host: &Host, name: &str, films: &[Self]) -> Self {
        let file = host.path(&format!("{name}.264"));
        let bytes: Vec<u8> =
            films.iter().flat_map(|film| std::fs::read(&film.file).unwrap()).collect();
        std::fs::write(&file, bytes).unwrap();
        Self::of(file)
    }

    /// Reads a film.
    pub(crate) fn of(file: PathBuf) -> Self {
        let pictures = pictures(&std::fs::read(&file).unwrap());
        let stream = file.with_extension("ts");
        ffmpeg(&["-f", "h264", "-framerate", "25", "-i", arg(&file), "-c", "copy", arg(&stream)]);
        Self { file, pictures }
    }

    /// Returns a stream of a camera, which sends the film at its pace and closes at its end.
    pub(crate) fn camera(&self, name: &str) -> String {
        let file = self.file.with_extension("ts");
        format!(
            "{name}=filesrc location={} ! tsdemux ! h264parse ! identity sync=true ! rtph264pay pt=96 config-interval=-1 name=pay0",
            file.display()
        )
    }

    /// Checks that a stream contains `count` successive pictures of the film, slice by slice.
    pub(crate) fn check(&self, stream: &[u8], count: usize) {
        let got = pictures(stream);
        assert_eq!(got.len(), count);
        let first = self.pictures.iter().position(|picture| Some(picture) == got.first());
        let first = first.expect("the first picture is one of the film");
        let expected = self.pictures.iter().cycle().skip(first).take(count);
        let place = |found| self.pictures.iter().position(|picture| picture == found);
        let places: Vec<Option<usize>> = got.iter().map(place).collect();
        assert!(
            got.iter().eq(expected),
            "each slice as it was, from picture {first} on: {places:?}"
        );
        decodes(stream);
    }

    /// Checks the pictures of a stream as [`Self::check_parts`]. Returns their number, and the number of pictures of the repeated film
    /// that are missing between them: gaps are shorter than the film.
    pub(crate) fn gaps(&self, stream: &[u8]) -> (u64, u64) {
        self.check_parts(stream);
        let length = self.pictures.len();
        let got = pictures(stream);
        let places: Vec<usize> = got
            .iter()
            .filter_map(|found| self.pictures.iter().position(|picture| picture == found))
            .collect();
        let steps = places.windows(2).map(|pair| (pair[1] + length - pair[0]) % length);
        let missing: usize = steps.map(|step| step.saturating_sub(1)).sum();
        (got.len() as u64, missing as u64)
    }

    /// Checks that each picture of a stream is a whole one of the film, and that a decoder reports no error.
    pub(crate) fn check_parts(&self, stream: &[u8]) {
        let got = pictures(stream);
        assert!(got.iter().all(|picture| self.pictures.contains(picture)), "whole pictures");
        decodes(stream);
    }
}

fn ffmpeg(args: &[&str]) {
    let ran = Command::new("ffmpeg").args(["-y", "-v", "error"]).args(args).output().unwrap();
    assert!(ran.status.success(), "{args:?}: {ran:?}");
}

/// Returns the slices of each picture.
fn pictures(stream: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let units = paceline_media::h264::split(stream).map(|unit| unit.unwrap().bytes);
    units.map(slices).collect()
}

fn slices(unit: &[u8]) -> Vec<Vec<u8>> {
    let codes = unit.windows(3).enumerate().filter(|(_, bytes)| *bytes == [0, 0, 1]);
    let begins: Vec<usize> = codes.map(|(at, _)| at + 3).collect();
    let ends = begins.iter().skip(1).map(|begin| begin - 3).chain([unit.len()]);
    let nals = begins.iter().zip(ends).map(|(begin, end)| &unit[*begin..end]);
    let slices = nals.filter(|nal| matches!(nal[0] & 0x1f, 1 | 5));
    slices.map(|nal| nal[..=nal.iter().rposition(|byte| *byte != 0).unwrap()].to_vec()).collect()
}

/// Checks that ffmpeg decodes a stream without a word.
fn decodes(stream: &[u8]) {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let file = std::env::temp_dir().join(format!("plt-film-{}-{number}", std::process::id()));
    std::fs::write(&file, stream).unwrap();
    let args = ["-v", "warning", "-f", "h264", "-i", arg(&file), "-f", "null", "-"];
    let ran = Command::new("ffmpeg").args(args).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    // Its estimate of times, which a stream without any does not have.
    let said: Vec<&str> = said
        .lines()
        .filter(|line| {
            !["timestamps", "unset", "estimate rate"].iter().any(|part| line.contains(part))
        })
        .collect();
    assert!(ran.status.success() && said.is_empty(), "{said:?}");
}

/// Returns the width, height and number of pictures of a file.
pub(crate) fn probe(file: &Path) -> (u32, u32, u32) {
    let entries = "stream=width,height,nb_read_frames";
    let demuxer = match file.extension().and_then(|end| end.to_str()) {
        Some("mjpeg") => "mjpeg",
        Some("265") => "hevc",
        _ => "h264",
    };
    let args =
        ["-v", "error", "-f", demuxer, "-count_frames", "-show_entries", entries, "-of", "csv=p=0"];
    let ran = Command::new("ffprobe").args(args).arg(file).output().unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    let numbers: Vec<u32> = text.trim().split(',').filter_map(|text| text.parse().ok()).collect();
    let [width, height, count] = numbers[..] else { panic!("{text} {:?}", ran.stderr) };
    (width, height, count)
}

/// Checks that ffmpeg decodes a file with sound without a word.
pub(crate) fn check_sound(file: &Path) {
    let args = ["-v", "warning", "-i", arg(file), "-f", "null", "-"];
    let ran = Command::new("ffmpeg").args(args).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    let said: Vec<&str> = said
        .lines()
        .filter(|line| !line.contains("Estimating duration") && !line.contains("Guessed Channel"))
        .collect();
    assert!(ran.status.success() && said.is_empty(), "{said:?}");
}

/// Checks that a film has this many pictures at least and sound, and that ffmpeg decodes it without an error.
pub(crate) fn check_both(file: &Path, pictures: usize) {
    let entries = ["-v", "error", "-show_entries", "packet=codec_type", "-of", "csv=p=0"];
    let probed = Command::new("ffprobe").args(entries).arg(file).output().unwrap();
    let text = String::from_utf8_lossy(&probed.stdout).into_owned();
    let count = |medium: &str| text.lines().filter(|line| line.starts_with(medium)).count();
    assert!(count("video") >= pictures && count("audio") >= pictures, "{text}");
    let args = ["-v", "error", "-i", arg(file), "-f", "null", "-"];
    let ran = Command::new("ffmpeg").args(args).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stderr), "");
}
