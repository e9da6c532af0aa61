//! The films of the test, and the commands that make them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A film.
pub(crate) struct Made {
    pub(crate) name: &'static str,
    /// The program, and its arguments; `OUT` stands for the file, and other names in capitals for earlier ones.
    line: &'static str,
    pub(crate) rule: Rule,
}

/// The times that are compared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rule {
    /// Times count from the first unit: the probe begins anew at a wrap, and adds the largest negative composition offset of
    /// fragments.
    pub(crate) relative: bool,
    /// The container has no decoding times, so that the probe estimates them.
    pub(crate) no_decode: bool,
    /// The film cannot be read from a pipe.
    pub(crate) no_pipe: bool,
    /// Its sound is cut in another place by the probe.
    pub(crate) free_sound: bool,
}

const ALL: Rule = Rule { relative: false, no_decode: false, no_pipe: false, free_sound: false };
const FILE: Rule = Rule { no_pipe: true, ..ALL };
const SHOWN: Rule = Rule { no_decode: true, ..ALL };
const WRAP: Rule = Rule { relative: true, ..ALL };

const fn made(name: &'static str, rule: Rule, line: &'static str) -> Made {
    Made { name, line, rule }
}

/// `V` is a picture source of 25 Hz, `W` of 29.97 Hz, `A` a sound source, `X` the settings of H.264 with B pictures.
pub(crate) const FILMS: &[Made] = &[
    made("b.mp4", FILE, "ffmpeg V A X -c:a aac OUT"),
    made("plain.mp4", FILE, "ffmpeg V A -c:v libx264 -bf 0 -g 10 -c:a aac OUT"),
    made("front.mp4", ALL, "ffmpeg V A X -c:a aac -movflags +faststart OUT"),
    made("fragments.mp4", ALL, "ffmpeg V A X -c:a aac -movflags frag_keyframe+empty_moov OUT"),
    made(
        "each.mp4",
        ALL,
        "ffmpeg V A X -c:a aac -movflags frag_every_frame+empty_moov+default_base_moof OUT",
    ),
    made(
        "delayed.mp4",
        ALL,
        "ffmpeg V A X -c:a aac -movflags frag_keyframe+delay_moov+default_base_moof OUT",
    ),
    made("dash.mp4", ALL, "ffmpeg V A X -c:a aac -movflags dash+global_sidx+frag_keyframe OUT"),
    made(
        "cmaf.mp4",
        WRAP,
        "ffmpeg V A X -c:a aac -movflags cmaf+frag_keyframe+negative_cts_offsets OUT",
    ),
    made("negative.mp4", FILE, "ffmpeg V A X -c:a aac -movflags negative_cts_offsets OUT"),
    made("cut.mp4", FILE, "ffmpeg -ss 0.48 -i b.mp4 -c copy OUT"),
    made("cut_key.mp4", FILE, "ffmpeg -ss 0.8 -i plain.mp4 -c copy OUT"),
    made("end.mp4", FILE, "ffmpeg -i b.mp4 -t 1 -c copy OUT"),
    made("late_sound.mp4", FILE, "ffmpeg V -itsoffset 0.5 A X -c:a aac OUT"),
    made("late_pictures.mp4", FILE, "ffmpeg -itsoffset 0.3 V A X -c:a aac OUT"),
    // ffprobe's rotation counts counter-clockwise: this is 90 there, and 270 clockwise.
    made("turned.mp4", FILE, "ffmpeg -i b.mp4 -c copy -metadata:s:v:0 rotate=90 OUT"),
    made("ntsc.mp4", FILE, "ffmpeg W A X -c:a aac OUT"),
    made("odd_ticks.mp4", FILE, "ffmpeg W X -video_track_timescale 1001 OUT"),
    made(
        "variable.mp4",
        FILE,
        "ffmpeg V -vf select='mod(n\\,5)' -vsync vfr -c:v libx264 -bf 2 OUT",
    ),
    made(
        "h265.mp4",
        FILE,
        "ffmpeg V A -c:v libx265 -x265-params log-level=error:bframes=3 -c:a aac OUT",
    ),
    made("av1.mp4", FILE, "ffmpeg V -c:v libsvtav1 -preset 12 OUT"),
    made("opus.mp4", FILE, "ffmpeg V A -c:v libx264 -c:a libopus OUT"),
    made("mp3.mp4", FILE, "ffmpeg V A -c:v mpeg4 -c:a libmp3lame OUT"),
    made("pcm.mov", FILE, "ffmpeg V A -c:v mjpeg -c:a pcm_s16le OUT"),
    made("alaw.mov", FILE, "ffmpeg V A X -c:a pcm_alaw -ar 8000 -ac 1 OUT"),
    made("gst.mp4", FILE, "gst H264 ! mp4mux name=mux ! filesink location=OUT AAC ! mux."),
    made(
        "gst_fragments.mp4",
        ALL,
        "gst H264 ! mp4mux name=mux fragment-duration=500 streamable=true ! filesink location=OUT AAC ! mux.",
    ),
    made("gst.mov", FILE, "gst H264 ! qtmux name=mux ! filesink location=OUT AAC ! mux."),
    made("b.mkv", SHOWN, "ffmpeg V A X -c:a aac OUT"),
    made(
        "h265.mkv",
        SHOWN,
        "ffmpeg V A -c:v libx265 -x265-params log-level=error -c:a libopus OUT",
    ),
    made("av1.webm", SHOWN, "ffmpeg V A -c:v libsvtav1 -preset 12 -c:a libopus OUT"),
    made("vp9.webm", SHOWN, "ffmpeg V A -c:v libvpx-vp9 -deadline realtime -c:a libvorbis OUT"),
    made("live.mkv", SHOWN, "ffmpeg W A X -c:a pcm_s16le -f matroska -live 1 OUT"),
    made("mjpeg.mkv", SHOWN, "ffmpeg V A -c:v mjpeg -c:a libmp3lame OUT"),
    made(
        "gst.mkv",
        SHOWN,
        "gst H264 ! matroskamux streamable=true name=mux ! filesink location=OUT AAC ! mux.",
    ),
    made("b.ts", ALL, "ffmpeg V A X -c:a aac OUT"),
    made("h265.ts", ALL, "ffmpeg V A -c:v libx265 -x265-params log-level=error -c:a ac3 OUT"),
    made("mpeg2.ts", ALL, "ffmpeg V A -c:v mpeg2video -bf 2 -c:a mp2 OUT"),
    made("opus.ts", ALL, "ffmpeg V A X -c:a libopus OUT"),
    made("timed.m2ts", ALL, "ffmpeg V A X -c:a ac3 -f mpegts -mpegts_m2ts_mode 1 OUT"),
    made("wrap.ts", WRAP, "ffmpeg V A X -c:a aac -output_ts_offset 95441.5 OUT"),
    made("gst.ts", ALL, "gst H264 ! mpegtsmux name=mux ! filesink location=OUT AAC ! mux."),
    made("b.flv", ALL, "ffmpeg V A X -c:a aac OUT"),
    made("flv1.flv", ALL, "ffmpeg V A -c:v flv1 -c:a libmp3lame -ar 44100 OUT"),
    made("gst.flv", ALL, "gst H264 ! flvmux name=mux ! filesink location=OUT AAC ! mux."),
    made("mpeg2.vob", ALL, "ffmpeg V A -c:v mpeg2video -bf 0 -c:a mp2 OUT"),
    made("mpeg1.mpg", ALL, "ffmpeg V A -c:v mpeg1video -bf 0 -c:a mp2 OUT"),
];

/// The parts of command lines.
const PARTS: &[(&str, &str)] = &[
    ("V", "-f lavfi -t 2 -i testsrc2=s=160x120:r=25"),
    ("W", "-f lavfi -t 2 -i testsrc2=s=160x120:r=30000/1001"),
    ("A", "-f lavfi -t 2 -i sine=r=48000"),
    ("X", "-c:v libx264 -preset fast -bf 3 -g 20 -pix_fmt yuv420p"),
    (
        "H264",
        "videotestsrc num-buffers=50 ! video/x-raw,width=160,height=120,framerate=25/1 ! x264enc bframes=2 key-int-max=20 ! h264parse",
    ),
    ("AAC", "audiotestsrc num-buffers=90 ! audio/x-raw,rate=48000 ! avenc_aac ! aacparse"),
];

impl Made {
    /// Makes the film in `folder`; `None` if the program or one of its parts is missing.
    pub(crate) fn make(&self, folder: &Path) -> Option<PathBuf> {
        let mut words = self.line.split(' ');
        let (program, fixed): (_, &[&str]) = match words.next() {
            Some("gst") => ("gst-launch-1.0", &["-q"]),
            _ => ("ffmpeg", &["-y", "-v", "error", "-nostdin"]),
        };
        let parts = words.flat_map(|word| {
            let part = PARTS.iter().find(|(name, _)| *name == word).map_or(word, |(_, part)| part);
            part.split(' ').map(|word| word.replace("OUT", self.name)).collect::<Vec<_>>()
        });
        let args: Vec<String> = fixed.iter().map(|word| (*word).to_owned()).chain(parts).collect();
        let ran = Command::new(program).args(&args).current_dir(folder).output().ok()?;
        if !ran.status.success() {
            println!("skipped: {}: {}", self.name, String::from_utf8_lossy(&ran.stderr).trim());
            return None;
        }
        Some(folder.join(self.name))
    }
}
