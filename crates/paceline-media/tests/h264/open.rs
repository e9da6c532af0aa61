//! Decoding from a key picture that is not IDR.

use crate::support::size;
use paceline_media::h264::{
    AccessUnit, Class, Event, Transcoder, Want, is_idr, refresh_frames, split,
};
use std::io::Write as _;
use std::process::{Command, Stdio};

const SIDES: (usize, usize) = (320, 240);

/// Runs ffmpeg; `None` if it is not installed.
fn ffmpeg(args: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error"]).args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut ffmpeg = command.spawn().ok()?;
    let mut stdin = ffmpeg.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || drop(stdin.write_all(input)));
        ffmpeg.wait_with_output().unwrap()
    });
    Some(output.stdout)
}

fn psnr(a: &[u8], b: &[u8]) -> f64 {
    let square = |(a, b): (&u8, &u8)| (f64::from(*a) - f64::from(*b)).powi(2);
    let error: f64 = a.iter().zip(b).map(square).sum();
    10.0 * (255.0 * 255.0 * a.len() as f64 / error.max(1.0)).log10()
}

/// The arguments of ffmpeg for the luma of the pictures of a stream.
const GRAY: &[&str] = &["-f", "h264", "-i", "-", "-vf", "format=gray", "-f", "rawvideo", "-"];

/// Returns the places of the key units behind the first unit.
fn later_keys(units: &[AccessUnit<'_>]) -> impl Iterator<Item = usize> {
    (1..units.len()).filter(|at| units[*at].class == Class::I)
}

#[test]
fn decoding_starts_at_open_key_pictures() {
    for params in [
        "keyint=16:open-gop=1:bframes=3",
        "keyint=16:open-gop=1:bframes=5:b-adapt=0:b-pyramid=normal:ref=4",
        "keyint=15:open-gop=1:bframes=2:ref=1:cabac=0:8x8dct=0",
        "keyint=17:open-gop=1:bframes=3:cqm=jvt:slices=3",
        "keyint=16:open-gop=1:bframes=2:aud=1",
        "keyint=9:open-gop=1:bframes=1:weightp=2:direct=temporal",
    ] {
        let source = format!("testsrc2=s={}x{}:r=25,gblur=sigma=2", SIDES.0, SIDES.1);
        let input = ["-f", "lavfi", "-i", &source, "-frames:v", "110", "-c:v", "libx264"];
        let output = ["-x264-params", params, "-f", "h264", "-"];
        let Some(stream) = ffmpeg(&[&input[..], &output].concat(), b"") else {
            println!("skipped: decoding_starts_at_open_key_pictures (ffmpeg is not installed)");
            return;
        };
        let shown = ffmpeg(GRAY, &stream).unwrap();
        let source: Vec<_> = shown.chunks(SIDES.0 * SIDES.1).collect();
        let units: Vec<_> = split(&stream).map(Result::unwrap).collect();
        let open: Vec<_> = later_keys(&units).filter(|at| !is_idr(units[*at].bytes)).collect();
        assert!(open.len() > 5, "{params}: {} open key pictures", open.len());
        for start in open.into_iter().take(4) {
            let mut transcoder = Transcoder::new(Some(size("320x240")), 25.0).unwrap();
            let (mut coded, mut failed) = (Vec::new(), Vec::new());
            let mut event = |event| match event {
                Event::Coded { bytes, .. } => coded.push(bytes),
                Event::Passed | Event::OverLimit => {}
                Event::Failed(error) => failed.push(error.to_string()),
            };
            let mut leading = true;
            let mut pushed = 0;
            for (at, unit) in units.iter().enumerate().skip(start).take(36) {
                leading &= at == start || unit.class == Class::Leading;
                if at == start || !leading {
                    transcoder.push(unit.bytes, unit.class, &mut |_| Want::Yes, &mut event);
                    pushed += 1;
                }
            }
            transcoder.flush(&mut |_| Want::Yes, &mut event);
            assert!(failed.is_empty(), "{params}, unit {start}: {failed:?}");
            assert_eq!(coded.len(), pushed, "{params}, unit {start}");
            let shown = ffmpeg(GRAY, &coded.concat()).unwrap();
            assert_eq!(shown.len(), pushed * SIDES.0 * SIDES.1, "{params}, unit {start}");
            for (number, picture) in shown.chunks(SIDES.0 * SIDES.1).enumerate() {
                let best = source.iter().map(|source| psnr(source, picture));
                let best = best.fold(0.0, f64::max);
                assert!(best > 30.0, "{params}, unit {start}, picture {number}: {best:.1} dB");
            }
        }
    }
}

#[test]
fn the_pictures_of_a_gradual_refresh_are_delivered_once_it_is_complete() {
    let source = format!("testsrc2=s={}x{}:r=25,gblur=sigma=2", SIDES.0, SIDES.1);
    let input = ["-f", "lavfi", "-i", &source, "-frames:v", "80", "-c:v", "libx264"];
    let params = "keyint=20:intra-refresh=1:bframes=2:scenecut=0";
    let output = ["-x264-params", params, "-f", "h264", "-"];
    let Some(stream) = ffmpeg(&[&input[..], &output].concat(), b"") else {
        println!(
            "skipped: the_pictures_of_a_gradual_refresh_are_delivered_once_it_is_complete (no ffmpeg)"
        );
        return;
    };
    let shown = ffmpeg(GRAY, &stream).unwrap();
    let source: Vec<_> = shown.chunks(SIDES.0 * SIDES.1).collect();
    let units: Vec<_> = split(&stream).map(Result::unwrap).collect();
    let begins = |at: &usize| refresh_frames(units[*at].bytes) > 0;
    let starts: Vec<_> = later_keys(&units).filter(begins).collect();
    assert!(starts.len() >= 2, "{} refreshes", starts.len());
    for start in starts.into_iter().take(2) {
        let mut transcoder = Transcoder::new(Some(size("320x240")), 25.0).unwrap();
        let (mut coded, mut failed) = (Vec::new(), 0);
        let mut event = |event| match event {
            Event::Coded { bytes, .. } => coded.push(bytes),
            Event::Passed | Event::OverLimit => {}
            Event::Failed(error) => {
                assert!(error.to_string().contains("gradual refresh"), "{error}");
                failed += 1;
            }
        };
        for unit in &units[start..] {
            transcoder.push(unit.bytes, unit.class, &mut |_| Want::Yes, &mut event);
        }
        transcoder.flush(&mut |_| Want::Yes, &mut event);
        assert_eq!(coded.len() + failed, units.len() - start, "unit {start}");
        let frames = refresh_frames(units[start].bytes) as usize;
        assert!(
            (frames..3 * frames + 3).contains(&failed),
            "{failed} of a refresh of {frames} frames"
        );
        let shown = ffmpeg(GRAY, &coded.concat()).unwrap();
        assert_eq!(shown.len(), coded.len() * SIDES.0 * SIDES.1);
        for (number, picture) in shown.chunks(SIDES.0 * SIDES.1).enumerate() {
            let best = source.iter().map(|source| psnr(source, picture)).fold(0.0, f64::max);
            assert!(best > 30.0, "unit {start}, picture {number}: {best:.1} dB");
        }
    }
}
