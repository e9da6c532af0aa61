//! Subscribers that join in the middle of a group of pictures of 10 s, of which 8 s are published.

use crate::ffmpeg::{ffmpeg, pictures};
use crate::support::{at_rate, pair};
use paceline::{Capacity, Encoding, Node, Sample, Subscriber, SubscriberBuilder};
use paceline_media::codec::Codec;
use paceline_media::h264::split;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SIZE: (u32, u32) = (320, 240);
/// The pictures per second, and the number of published pictures.
const HERTZ: u32 = 25;
const PICTURES: u32 = 200;
/// The number of pictures before the subscribers join.
const BEFORE: u32 = 120;

/// Generates a stream with key pictures only at its begin; `None` if ffmpeg is not installed.
fn stream(more: &str) -> Option<Vec<Vec<u8>>> {
    let source = format!("testsrc2=s={}x{}:r={HERTZ},gblur=sigma=2", SIZE.0, SIZE.1);
    let count = PICTURES.to_string();
    let params = format!("keyint=250:scenecut=0{more}");
    let input = ["-f", "lavfi", "-i", &source, "-frames:v", &count, "-c:v", "libx264"];
    let output = ["-b:v", "800k", "-x264-params", &params, "-f", "h264", "-"];
    let (bytes, errors) = ffmpeg(&[&input[..], &output].concat(), b"")?;
    assert!(errors.is_empty(), "{errors}");
    Some(split(&bytes).map(|unit| unit.unwrap().bytes.to_vec()).collect())
}

/// A late subscriber, and the samples that it received.
struct Joiner {
    name: &'static str,
    size: (u32, u32),
    /// The time from the declaration to the first picture.
    first: Duration,
    samples: Vec<Sample>,
}

type Ask = fn(SubscriberBuilder<'_>) -> SubscriberBuilder<'_>;

/// A requested form: its name, the request, and the size of its pictures.
type Form = (&'static str, Ask, (u32, u32));

const FORMS: [Form; 4] = [
    ("all", |it| it, SIZE),
    ("every 3", |it| it.every(3), SIZE),
    ("160x120", |it| it.size(160, 120), (160, 120)),
    ("160x120 at 5 Hz", |it| it.size(160, 120).max_hz(5.0), (160, 120)),
];

/// Old pictures are of no use to this form, so it starts with the newest one, after the decoder has reached
/// that.
const BOUNDED: [Form; 1] = [(
    "160x120 at 5 Hz within 500 ms",
    |it| it.size(160, 120).max_hz(5.0).within(Duration::from_millis(500)),
    (160, 120),
)];

fn join(node: &Node, (name, ask, size): Form, over: &AtomicBool) -> Joiner {
    let began = Instant::now();
    // The default queue: a program that joins late has no special settings.
    let mut subscriber: Subscriber = ask(node.subscriber("camera")).declare().unwrap();
    let (mut first, mut samples) = (Duration::MAX, Vec::new());
    while !over.load(Ordering::Relaxed) {
        while let Ok(sample) = subscriber.recv_timeout(Duration::from_millis(100)) {
            first = first.min(began.elapsed());
            samples.push(sample);
        }
    }
    Joiner { name, size, first, samples }
}

/// Publishes a stream, and lets subscribers join at both ends of a link after `BEFORE` pictures.
fn joiners(units: &[Vec<u8>], forms: &[Form], capacity: Option<Capacity>) -> Vec<Joiner> {
    let (robot, viewer) = pair(|link| match capacity {
        Some(capacity) => link.capacity(capacity),
        None => link,
    });
    let camera = robot.publisher("camera").encoding(Encoding::new("video/h264"));
    let mut camera = camera.hz(f64::from(HERTZ)).declare().unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        at_rate(HERTZ, PICTURES, |n| {
            if n == BEFORE {
                for &form in forms {
                    for node in [&robot, &viewer] {
                        let over = &over;
                        threads.push(scope.spawn(move || join(node, form, over)));
                    }
                }
            }
            camera.put(units[n as usize].clone()).unwrap();
        });
        std::thread::sleep(Duration::from_millis(300));
        over.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Returns a description if a subscriber joined late, or received what it cannot decode.
fn problem(joiner: &Joiner) -> Option<String> {
    let Joiner { name, size, first, samples } = joiner;
    let delivered: Vec<u8> = samples.iter().flat_map(|sample| sample.payload.to_vec()).collect();
    let (shown, errors) = pictures(Codec::H264, &delivered, *size);
    let last = samples.last().map_or(0, |sample| sample.seq);
    println!("{name}: first picture after {first:?}, {} pictures, last {last}", samples.len());
    let newest = samples.iter().all(|sample| sample.age < Duration::from_millis(500));
    let late = *first > Duration::from_millis(500) && !newest;
    let live = last + 20 > u64::from(PICTURES);
    let whole = shown.len() == samples.len() && errors.is_empty();
    let right = !late && live && whole;
    (!right).then(|| {
        let counts = format!("{} of {} pictures shown", shown.len(), samples.len());
        format!("{name}: first {first:?}, {counts}, last {last}: {errors}")
    })
}

fn check(test: &str, (more, forms): (&str, &[Form]), capacity: Option<u64>) {
    let Some(units) = stream(more) else {
        println!("skipped: {test} (ffmpeg is not installed)");
        return;
    };
    let capacity = capacity.map(|bits| Capacity::from_bits_per_s(bits).unwrap());
    let problems: Vec<_> = joiners(&units, forms, capacity).iter().filter_map(problem).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn late_subscribers_see_a_picture_at_once() {
    check("late_subscribers_see_a_picture_at_once", ("", &FORMS), None);
}

#[test]
fn late_subscribers_see_a_picture_at_once_over_a_link_with_spare_capacity() {
    let test = "late_subscribers_see_a_picture_at_once_over_a_link_with_spare_capacity";
    check(test, (":bframes=0", &FORMS), Some(50_000_000));
}

#[test]
fn late_subscribers_with_a_delay_bound_start_with_a_new_picture() {
    let test = "late_subscribers_with_a_delay_bound_start_with_a_new_picture";
    check(test, ("", &BOUNDED), None);
}

/// The decoder has no IDR picture to start with.
#[test]
fn late_subscribers_of_open_groups_see_a_picture_at_once() {
    let test = "late_subscribers_of_open_groups_see_a_picture_at_once";
    check(test, (":keyint=50:open-gop=1:bframes=3", &FORMS[2..]), None);
}
