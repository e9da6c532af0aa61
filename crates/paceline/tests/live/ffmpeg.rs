//! Encoding and decoding of test streams by ffmpeg.

use paceline_media::codec::Codec;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Runs ffmpeg; returns its standard output and its errors. `None` if it is not installed.
pub(crate) fn ffmpeg(args: &[&str], input: &[u8]) -> Option<(Vec<u8>, String)> {
    let mut command = Command::new("ffmpeg");
    command.env("SVT_LOG", "0").args(["-v", "error"]).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut ffmpeg = command.spawn().ok()?;
    let mut stdin = ffmpeg.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let ended = ffmpeg.wait_with_output().unwrap();
    writer.join().unwrap();
    Some((ended.stdout, String::from_utf8_lossy(&ended.stderr).into_owned()))
}

/// Decodes a stream; returns the luma of each picture, scaled to `size`.
pub(crate) fn pictures(codec: Codec, stream: &[u8], size: (u32, u32)) -> (Vec<Vec<u8>>, String) {
    let scale = format!("scale={}:{}:flags=area,format=gray,setpts=N", size.0, size.1);
    let args =
        ["-f", format_of(codec), "-i", "-", "-vsync", "0", "-vf", &scale, "-f", "rawvideo", "-"];
    let (bytes, errors) = ffmpeg(&args, stream).expect("it made the stream");
    (bytes.chunks((size.0 * size.1) as usize).map(<[u8]>::to_vec).collect(), errors)
}

/// Returns the peak signal-to-noise ratio of two pictures in dB.
pub(crate) fn psnr(a: &[u8], b: &[u8]) -> f64 {
    let square = |(a, b): (&u8, &u8)| (f64::from(*a) - f64::from(*b)).powi(2);
    let error: f64 = a.iter().zip(b).map(square).sum();
    10.0 * (255.0 * 255.0 * a.len() as f64 / error.max(1.0)).log10()
}

/// Returns ffmpeg's name for streams of a codec.
pub(crate) const fn format_of(codec: Codec) -> &'static str {
    match codec {
        Codec::H264 => "h264",
        Codec::H265 => "hevc",
        Codec::Av1 => "obu",
    }
}
