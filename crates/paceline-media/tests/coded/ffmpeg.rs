//! Encoding and decoding with ffmpeg.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The number of pictures of each stream.
pub(crate) const PICTURES: usize = 50;
/// The size of the pictures.
pub(crate) const SIZE: (usize, usize) = (160, 120);

/// A mode of an encoder.
pub(crate) struct Mode<'a> {
    pub(crate) name: &'a str,
    pub(crate) encoder: &'a str,
    pub(crate) args: &'a [&'a str],
}

/// Runs ffmpeg; returns its standard output and its errors, and whether it succeeded.
fn run(args: &[&str], input: &[u8]) -> Option<(Vec<u8>, String, bool)> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error"]).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut ffmpeg = command.spawn().ok()?;
    let mut stdin = ffmpeg.stdin.take().unwrap();
    let ended = std::thread::scope(|scope| {
        scope.spawn(move || drop(stdin.write_all(input)));
        ffmpeg.wait_with_output().unwrap()
    });
    let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
    Some((ended.stdout, errors, ended.status.success()))
}

/// Returns a stream in this mode; without the encoder, prints a line and returns `None`.
pub(crate) fn encoded(test: &str, format: &str, mode: &Mode<'_>) -> Option<Vec<u8>> {
    static ENCODERS: OnceLock<Option<String>> = OnceLock::new();
    let list = || run(&["-hide_banner", "-encoders"], b"");
    let text = |(text, ..): (Vec<u8>, String, bool)| String::from_utf8_lossy(&text).into_owned();
    let Some(encoders) = ENCODERS.get_or_init(|| list().map(text)) else {
        println!("skipped: {test} (ffmpeg is not installed)");
        return None;
    };
    if !encoders.contains(mode.encoder) {
        println!("skipped: {test} (this ffmpeg has no {})", mode.encoder);
        return None;
    }
    let source = format!("testsrc2=s={}x{}:r=25", SIZE.0, SIZE.1);
    let pictures = PICTURES.to_string();
    let input = ["-f", "lavfi", "-i", &source, "-frames:v", &pictures, "-pix_fmt", "yuv420p"];
    let args = [&input[..], &["-c:v", mode.encoder], mode.args, &["-f", format, "-"]].concat();
    let (stream, errors, done) = run(&args, b"").unwrap();
    assert!(done && !stream.is_empty(), "{}: {errors}", mode.name);
    Some(stream)
}

/// Decodes a stream; returns the luma of each picture and the errors.
pub(crate) fn decoded(format: &str, stream: &[u8]) -> (Vec<Vec<u8>>, String) {
    let filter = "format=gray,setpts=N";
    let args = ["-f", format, "-i", "-", "-vsync", "0", "-vf", filter, "-f", "rawvideo", "-"];
    let (bytes, errors, _) = run(&args, stream).expect("it made the stream");
    (bytes.chunks(SIZE.0 * SIZE.1).map(<[u8]>::to_vec).collect(), errors)
}
