//! Picture files: written by a subscriber and read by a publisher.

use crate::host::{Host, arg};
use paceline_media::{Format, Size, Y4mReader, mjpeg};

#[test]
fn jpeg_pictures_make_an_mjpeg_file_that_can_be_published() {
    let host = Host::new();
    let file = host.path("card.mjpeg");
    let camera = host.start(&["pub", "cam", "--test-card", "320x240@20"]);
    let sub = host.run(&["sub", "cam", "--out", arg(&file), "--count", "5", "--timeout", "30s"]);
    assert_eq!(sub.code, Some(0), "{sub:?}");
    drop(camera);
    let bytes = std::fs::read(&file).unwrap();
    let pictures: Vec<_> = mjpeg::split(&bytes).map(Result::unwrap).collect();
    assert_eq!(pictures.len(), 5);
    assert_eq!(Format::Jpeg.picture_size(pictures[0]), Size::new(320, 240));

    let _player = host.start(&["pub", "film", "--file", arg(&file), "--hz", "20", "--loop"]);
    let sub = host.run(&["sub", "film", "--count", "8", "--timeout", "30s", "--json"]);
    assert_eq!(sub.code, Some(0), "{sub:?}");
    for line in sub.json().iter().filter(|line| line["seq"].is_u64()) {
        let seq = usize::try_from(line["seq"].as_u64().unwrap()).unwrap();
        assert_eq!(line["bytes"], pictures[seq % 5].len());
        assert_eq!(line["encoding"], "image/jpeg");
    }

    // A file of another name is published at its rate too, although a pipe of pictures is published as they arrive.
    let other = host.path("card.bin");
    std::fs::copy(&file, &other).unwrap();
    let began = std::time::Instant::now();
    let pictures = ["--file", arg(&other), "--encoding", "image/jpeg", "--hz", "5"];
    let played =
        host.run(&[&["pub", "other", "--count", "5", "--wait", "0s"], &pictures[..]].concat());
    assert_eq!(played.code, Some(0), "{played:?}");
    assert!(began.elapsed().as_millis() >= 800, "five pictures at 5 Hz: {:?}", began.elapsed());
}

#[test]
fn a_y4m_file_is_published_raw_and_written_again() {
    let host = Host::new();
    let (card, copy) = (host.path("card.y4m"), host.path("copy.y4m"));
    let camera = host.start(&["pub", "cam", "--test-card", "160x120@20"]);
    let sub = host.run(&["sub", "cam", "--out", arg(&card), "--count", "3", "--timeout", "30s"]);
    assert_eq!(sub.code, Some(0), "{sub:?}");
    drop(camera);

    let _player = host.start(&["pub", "film", "--file", arg(&card), "--loop"]);
    let sub = host.run(&[
        "sub",
        "film",
        "--size",
        "80x60",
        "--out",
        arg(&copy),
        "--count",
        "6",
        "--timeout",
        "30s",
        "--json",
    ]);
    assert_eq!(sub.code, Some(0), "{sub:?}");
    assert_eq!(sub.json()[5]["encoding"], "video/raw;format=i420;width=80;height=60;range=full");
    assert_eq!(sub.json()[5]["width"], 80);
    let bytes = std::fs::read(&copy).unwrap();
    let reader = Y4mReader::new(&bytes).unwrap();
    assert_eq!(reader.size(), Size::new(80, 60).unwrap());
    assert_eq!((reader.rate().num, reader.rate().den), (20, 1));
    assert_eq!(reader.filter(Result::is_ok).count(), 6);
}

#[test]
fn a_corrupt_picture_file_is_refused_by_name_and_position() {
    let host = Host::new();
    let (noise, empty, cut) = (host.path("noise.mjpeg"), host.path("no.mjpeg"), host.path("x.y4m"));
    std::fs::write(&noise, [0x41; 1_000]).unwrap();
    std::fs::write(&empty, []).unwrap();
    std::fs::write(&cut, "YUV4MPEG2 W2 H2 F25:1\nFRAME\n01").unwrap();
    host.run(&["pub", "a", "--file", arg(&noise)])
        .said(1, "noise.mjpeg: no jpeg picture at byte 0");
    host.run(&["pub", "a", "--file", arg(&empty)]).said(1, "no.mjpeg has no pictures");
    host.run(&["pub", "a", "--file", arg(&cut)])
        .said(1, "x.y4m: y4m frame 0 at byte 22: holds 2 of 6");
}

#[test]
fn text_cannot_be_written_as_a_picture() {
    let host = Host::new();
    let file = host.path("lines.txt");
    std::fs::write(&file, "a\nb\n").unwrap();
    let _player = host.start(&["pub", "t", "--file", arg(&file), "--hz", "10", "--loop"]);
    let out = host.path("t.y4m");
    let sub = host.run(&["sub", "t", "--out", arg(&out), "--count", "1", "--timeout", "30s"]);
    sub.said(1, "is text/plain, a .y4m file contains image/jpeg, image/png or");
}

#[test]
fn an_existing_file_stays_without_force_and_symbolic_links_are_not_followed() {
    let host = Host::new();
    let _latched = host.start(&["pub", "log", "new", "--latch"]);
    let _buffer = host.start(&["node", "--buffer", "log=10"]);
    let (mine, link) = (host.path("mine.txt"), host.path("link.txt"));
    std::fs::write(&mine, "mine").unwrap();
    std::os::unix::fs::symlink(&mine, &link).unwrap();
    let plan = host.path("ring.json");
    std::fs::copy(
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/plans/three-rates.json"),
        &plan,
    )
    .unwrap();
    let commands: [&[&str]; 5] = [
        &["sub", "log", "--count", "1", "--timeout", "30s", "--out"],
        &["pull", "log", "--newest", "1", "--timeout", "30s", "--out"],
        &["record", "log", "--duration", "500ms", "--out"],
        &["plan", arg(&plan), "--svg"],
        &["plan", arg(&plan), "--problem"],
    ];
    for command in commands {
        let run = |file: &std::path::Path, more: &[&str]| {
            host.run(&[command, &[arg(file)][..], more].concat())
        };
        run(&mine, &[]).said(2, "mine.txt: it already exists; give --force to replace it");
        for more in [&[][..], &["--force"]] {
            run(&link, more).said(2, "link.txt: it is a symbolic link, which is not followed");
        }
        assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine", "{command:?}");
    }
    let mine = arg(&mine);
    let sub = ["sub", "log", "--out", mine, "--force", "--count", "1", "--timeout", "30s"];
    assert_eq!(host.run(&sub).code, Some(0));
    assert_eq!(std::fs::read_to_string(mine).unwrap(), "new\n");
    let calibrate = host.run(&["doctor", "--calibrate", "--out", mine]);
    calibrate.said(2, "it already exists and is no calibration");
}
