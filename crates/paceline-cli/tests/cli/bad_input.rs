//! Invalid input produces a message with the field, the value, the valid range and a fix.

use crate::host::{Host, arg};

/// Arguments, exit code, and the parts that standard error must contain.
type Case = (&'static [&'static str], i32, &'static [&'static str]);

const CASES: &[Case] = &[
    (&["sub", "a", "--loss", "3/2"], 2, &["--loss", "3/2", "x must be from 0 to y"]),
    (&["sub", "a", "--loss", "1"], 2, &["--loss", "two whole numbers x/y, for example 1/10"]),
    (&["sub", "a", "--max-hz", "0"], 2, &["'0'", "--max-hz", "from 0.001 to 1000000 (Hz)"]),
    (
        &["sub", "a", "--every", "0"],
        2,
        &["--every", "from 1 to 4294967295", "3 takes one in three"],
    ),
    (&["sub", "a", "--size", "0x10"], 2, &["--size", "width is \"0\"", "from 1 to 16384"]),
    (&["sub", "a", "--size", "60000x60000"], 2, &["--size", "width is \"60000\""]),
    (
        &["sub", "a", "--within", "1s", "--idle", "0s"],
        2,
        &["--idle", "from 1s", "without --idle an unused reservation stays"],
    ),
    (&["sub", "a", "--with", "cmd"], 2, &["with 'cmd' but without a contract", "within"]),
    (&["sub", "a", "--within", "1s", "--with", "b/*"], 2, &["--with", "b/*"]),
    (&["sub", "a", "--spare"], 2, &["spare without a contract", "within"]),
    (&["sub", "a", "--within", "1s", "--spare", "--idle", "30s"], 2, &["--spare", "--idle"]),
    (
        &["sub", "a", "--within", "1s", "--spare", "--proxy", "auto"],
        2,
        &["spare with a proxy", "publisher or subscriber"],
    ),
    (&["sub", "a", "--idle", "30s"], 2, &["idle without a contract", "within"]),
    (&["sub", "a", "--within", "0ms"], 2, &["--within", "leave it out"]),
    (&["pub", "a", "--within", "0ms"], 2, &["--within", "leave it out"]),
    (&["sub", "a", "--fresh", "0ms"], 2, &["--fresh", "for example 100ms"]),
    (&["sub", "a", "--fresh", "1s:stop"], 2, &["--fresh", "must be hold or zero"]),
    (&["sub", "a", "--fresh", "1s", "--spacing"], 2, &["--fresh", "cannot be used with"]),
    (&["sub", "a", "--spacing", "--ordered", "none"], 2, &["cannot be used with", "--spacing"]),
    (&["sub", "a", "--ordered", "none", "--hold", "1s"], 2, &["--hold", "nothing waits"]),
    (&["sub", "a", "--hold", "50ms"], 2, &["--ordered"]),
    (&["sub", "a", "--ordered", "time", "--hold", "9000h"], 2, &["--hold", "write 50ms"]),
    (&["sub", "a", "--ordered", "time", "--hold", "1s,samples=0"], 2, &["samples", "from 1 to"]),
    (&["sub", "a", "--max-jitter", "2ms"], 2, &["--within"]),
    (&["sub", "a", "--queue", "0"], 2, &["--queue", "from 1 to 65536"]),
    (&["sub", "a", "--proxy", "here"], 2, &["--proxy", "publisher, subscriber, auto or node:NAME"]),
    (&["sub", "a", "--count", "0"], 2, &["--count", "from 1"]),
    (&["sub", "a", "--timeout", "0s"], 2, &["--timeout", "must be from 1ms to"]),
    (&["sub", "a", "--timeout=-1s"], 2, &["'-1s'", "--timeout", "such as 200ms (allowed: "]),
    (&["sub", "a", "--name", ""], 2, &["''", "--name", "1 to 255 bytes"]),
    (&["sub", "a", "--within", "0.1"], 2, &["--within", "needs a unit: 0.1s (100ms) or 0.1ms?"]),
    (&["sub", "-t", "a"], 2, &["'-t'", "write the tag without a flag"]),
    (&["sub", "a", "-n", "3"], 2, &["'-n'", "write --count 10"]),
    (&["sub", "a", "--translate", "jq"], 2, &["'--translate'", "--out - | jq"]),
    (&["pub", "a", "-m", "left"], 2, &["'-m'", "paceline pub robot/goal left"]),
    (&["pub", "a", "left", "-r", "3"], 2, &["'-r'", "write --hz 10"]),
    (&["sub", "a", "--connect", "tcp/b:1"], 2, &["write --link connect=tcp/HOST:7600"]),
    (&["sub", "a//b"], 2, &["a//b", "empty chunk", "robot/camera"]),
    (&["sub", "fleet/vehicle_*"], 2, &["'*' stands for a whole part", "write 'fleet/*'"]),
    (&["sub", "a", "--play", "--out", "x"], 2, &["--play", "cannot be used with", "--out"]),
    (&["sub", "a/b*"], 2, &["write 'a/*'", "a whole part"]),
    (&["sub", "a", "--out", "-", "--json"], 2, &["--out -", "--json", "give --out a file"]),
    (&["sub", "a", "--out", "/no/such/folder/x"], 1, &["/no/such/folder/x", "create the folder"]),
    (&["pub", "a"], 2, &["--test-card", "--file"]),
    (&["pub", "a/*", "-"], 2, &["has a wildcard", "needs a full name"]),
    (&["pub", "a", "x.mjpeg"], 2, &["'x.mjpeg'", "write --file x.mjpeg"]),
    (&["pub", "a", "{x: 3}"], 2, &["VALUE", "begins like JSON", "--encoding text/plain"]),
    (&["pub", "a", "left", "--loop"], 2, &["--loop", "--hz"]),
    (&["pub", "a", "left", "--chunk", "1kB"], 2, &["--chunk", "leave --chunk out"]),
    (&["ls", "a/b*"], 2, &["write 'a/*'", "a whole part"]),
    (&["ls", "--tags", "--json"], 2, &["cannot be used with"]),
    (&["pub", "a", "-", "--file", "x"], 2, &["cannot be used with"]),
    (&["pub", "a", "-", "--hz", "0"], 2, &["--hz", "from 0.001"]),
    (&["pub", "a", "-", "--hz", "-1"], 2, &["'-1'", "--hz", "from 0.001"]),
    (&["pub", "a", "--file", "/"], 1, &["cannot read /", "it is a folder", "a file in it"]),
    (&["pub", "a", "-", "--period", "0ms"], 2, &["--period", "must be from 1us to 1000s"]),
    (&["pub", "a", "-", "--loss", "3/2"], 2, &["--loss", "3/2", "x must be from 0 to y"]),
    (&["pub", "a", "-", "--loop"], 2, &["--loop", "give --file FILE"]),
    (&["pub", "a", "--test-card", "320x240@0"], 2, &["--test-card", "rate '0'", "640x480@30"]),
    (&["pub", "a", "--test-card", "8x8@30"], 2, &["--test-card", "size 8x8 is below 160x120"]),
    (&["pub", "a", "-", "--quality", "50"], 2, &["--quality", "give --test-card"]),
    (&["pub", "a", "--test-card", "320x240", "--quality", "0"], 2, &["--quality", "1 to 100"]),
    (
        &["pub", "a", "-", "--encoding", "a/b\x1b[2J"],
        2,
        &["--encoding", "without control characters"],
    ),
    (&["pub", "a\u{202e}b", "-"], 2, &["contains '\\u{202e}'"]),
    (
        &["sub", "a", "--size", "8x8", "--audio", "8000x1"],
        2,
        &["--audio: a is one tag", "leave --audio out"],
    ),
    (
        &["watch", "a", "--print", "--size", "8x8", "--audio", "8000x1"],
        2,
        &["size and audio are both set; set only one"],
    ),
    (
        &["pull", "a", "--size", "8x8", "--audio", "8000x1"],
        2,
        &["size and audio are both set; set only one"],
    ),
    (
        &["pull", "a", "--bitrate", "32kbit"],
        2,
        &["write --audio 8000x1 or --size", "a pull has no bit rate"],
    ),
    (
        &["sub", "a", "--audio", "44100x1", "--bitrate", "32kbit", "--isolated"],
        2,
        &["rate of Opus is 44100, must be 8000, 12000, 16000, 24000 or 48000 (Hz); choose"],
    ),
    (&["sub", "a", "--isolated", "--runtime-dir", "x"], 2, &["cannot be used with"]),
    (&["sub", "a", "--out", "x.avi"], 2, &["cannot write .avi files", ".264 (H.264)", "ffmpeg"]),
    (
        &["sub", "a", "--out", "x.264", "--sound", "b", "--timeout", "1s"],
        2,
        &["only a film has a second track"],
    ),
    (&["pub", "a", "1", "--sound", "b"], 2, &["neither a film nor a camera"]),
    (&["pull", "a", "--out", "x.flv"], 2, &["cannot write .flv files", ".264 (H.264)"]),
    (&["sub", "a", "--out", "x.mcap"], 2, &["paceline record TAG --out FILE.mcap"]),
    (&["pub", "a", "--file", "tcp/nowhere"], 1, &["cannot read tcp/nowhere", "HOST:PORT"]),
    (&["pub", "a", "--file", "tcp/[::1]:1"], 1, &["cannot read tcp/[::1]:1", "must listen there"]),
    (&["pub", "a", "--file", "no-such.mjpeg"], 1, &["cannot read no-such.mjpeg", "No such file"]),
    (
        &["pub", "a", "--file", "no-such.txt"],
        1,
        &["cannot read no-such.txt", "No such file", "check the path"],
    ),
    (&["node", "--link", "colour=red"], 2, &["--link", "key 'colour' is not known", "capacity"]),
    (&["node", "--link", "listen=tcp/[::1]:1,capacity=0mbit"], 2, &["capacity '0mbit'", "8 bit/s"]),
    (
        &["node", "--link", "listen=tcp/[::1]:1,capacity=2"],
        2,
        &["capacity '2'", "needs a unit: 2mbit"],
    ),
    (
        &["node", "--link", "name=a\nb,connect=tcp/[::1]:1"],
        2,
        &["--link", "1 to 255 bytes without line breaks"],
    ),
    (&["node", "--link", "name=,connect=tcp/[::1]:1"], 2, &["--link", "name has no value"]),
    (&["node", "--name", "a\u{202e}b"], 2, &["--name", "1 to 255 bytes"]),
    (&["node", "--link", "listen=here"], 2, &["listen 'here'", "tcp/127.0.0.1:7600"]),
    (
        &["node", "--link", "name=a,connect=tcp/[::1]:1", "--link", "name=a,connect=tcp/[::1]:2"],
        2,
        &["two links are named 'a'"],
    ),
    (&["node", "--log", "wran"], 2, &["--log", "'wran'", "off, error, warn, info, debug or trace"]),
    (&["node", "--config", "no-such.toml"], 2, &["no-such.toml", "No such file"]),
    (&["node", "--print-unit", "--isolated"], 2, &["cannot be used with"]),
    (&["completion", "csh"], 2, &["'csh'", "bash", "zsh", "fish"]),
    (&["man", "--out", "no-such-folder"], 2, &["--out no-such-folder", "mkdir -p no-such-folder"]),
    (&["pull", "a", "--seq", "7..3"], 2, &["--seq", "7 is after 3: write 3..7"]),
    (&["pull", "a", "--seq", "7"], 2, &["--seq", "'7' is not a range", "100..200"]),
    (&["pull", "a", "--from", "-1s", "--to", "-2s"], 2, &["--from", "exchange them"]),
    (
        &["pull", "a", "--from", "now"],
        2,
        &["--from", "'now' is not a time", "-10s", "--at selects"],
    ),
    (&["pull", "a", "--from", "-10"], 2, &["--from", "needs a unit: -10s"]),
    (&["pull", "a", "--from", "-10s", "--newest", "1"], 2, &["cannot be used with"]),
    (&["pull", "a", "--newest", "0"], 2, &["--newest", "from 1 to 65536"]),
    (&["pull", "a", "--newest", "2", "--seq", "1..2"], 2, &["cannot be used with"]),
    (&["pull", "a/*"], 2, &["has a wildcard"]),
    (&["pull", "@pull/a"], 2, &["'@pull/a' begins with '@'", "another first character"]),
    (&["pull", "a", "--publisher", "7"], 2, &["--publisher", "00112233aabbccdd.0"]),
    (&["pub", "@a", "-"], 2, &["'@a' begins with '@'"]),
    (&["sub", "@pull/**"], 2, &["'@pull/**' begins with '@'"]),
    (&["pub", "a", "-", "--history", "0"], 2, &["--history", "0 samples", "from 1"]),
    (&["sub", "a", "--history", "bytes=1TB"], 2, &["--history", "1000000000000 bytes", "4 GiB"]),
    (&["node", "--buffer", "a=colour=red"], 2, &["--buffer", "key 'colour' is not known"]),
    (&["node", "--buffer", "a//b=100"], 2, &["--buffer", "empty chunk"]),
    (&["ls", "--timeout", "0ms"], 2, &["--timeout", "from 1ms to 1min"]),
    (&["demo", "--duration", "0s"], 2, &["--duration", "from 1ms to"]),
    (&["demo", "--duration=-5s"], 2, &["'-5s'", "--duration", "such as 200ms (allowed: "]),
    // Bare numbers, wrong units and old spellings.
    (
        &["sub", "a", "--within", "200"],
        2,
        &["--within", "needs a unit: 200ms, 0.2s (allowed: ns, us, ms, s, min, h)"],
    ),
    (&["sub", "a", "--hz", "5"], 2, &["unexpected argument '--hz': write --max-hz 10"]),
    (
        &["sub", "a", "--deadline=5ms"],
        2,
        &["unexpected argument '--deadline': write --within 200ms"],
    ),
    (&["sub", "a", "--within", "-5ms"], 2, &["'--within -5ms': a value must not be negative"]),
    (&["pull", "a", "--from", "10s"], 2, &["write -10s for 10s ago"]),
    (&["sub", "a", "--within", "2MB"], 2, &["unknown unit 'MB' (allowed: ns, us, ms, s, min, h)"]),
    (&["sub", "a", "--timeout", "5"], 2, &["--timeout", "needs a unit: 5s, 5000ms"]),
    (&["ls", "--timeout", "2500"], 2, &["--timeout", "needs a unit: 2500ms, 2.5s"]),
    (&["pub", "a", "-", "--period", "10"], 2, &["--period", "needs a unit: 10ms"]),
    (&["pub", "a", "-", "--chunk", "64"], 2, &["needs a unit: 64B, 0.064kB (allowed: B, kB,"]),
    (&["top", "--interval", "2"], 2, &["--interval", "needs a unit: 2s"]),
    (&["demo", "--seconds", "20"], 2, &["unexpected argument '--seconds': write --duration 10s"]),
    (&["pull", "a", "--time", "-10s.."], 2, &["'--time': write --from -10s --to -5s"]),
];

#[test]
fn wrong_arguments_name_field_value_range_and_fix() {
    let host = Host::new();
    for (args, code, parts) in CASES {
        let ended = host.run(args);
        for part in *parts {
            assert!(ended.stderr.contains(part), "{args:?}: '{part}' not in {}", ended.stderr);
        }
        assert_eq!(ended.code, Some(*code), "{args:?}: {ended:?}");
        assert!(ended.stdout.is_empty(), "{args:?}: {ended:?}");
    }
}

#[test]
fn an_unpublished_tag_is_reported_with_the_published_ones() {
    let host = Host::new();
    let _camera = host.start(&["pub", "robot/camera", "--test-card", "160x120@10"]);
    let sub = host.run(&["sub", "no/such", "--count", "1", "--timeout", "6s"]);
    sub.said(3, "no publisher on no/such yet; published tags: robot/camera");
    assert!(sub.stderr.contains("no sample") || sub.stderr.contains("0 of 1 samples"), "{sub:?}");
    assert!(sub.stderr.contains("check the tag or start a publisher"), "{}", sub.stderr);
}

#[test]
fn pictures_are_not_made_larger() {
    let host = Host::new();
    let _camera = host.start(&["pub", "cam", "--test-card", "320x240@10"]);
    let sub = host.run(&["sub", "cam", "--size", "640x480", "--count", "1", "--timeout", "6s"]);
    sub.said(3, "refused: cam of pub-cam: ");
    sub.said(3, "size 640x480 is above the publisher's 320x240: ask for 320x240 or a smaller size");
}

#[test]
fn a_full_disk_ends_one_subscriber_and_disturbs_no_other() {
    let host = Host::new();
    let _camera = host.start(&["pub", "cam", "--test-card", "160x120@20"]);
    let other = host.start(&["sub", "cam", "--count", "40", "--timeout", "30s", "--json"]);
    let full = host.run(&["sub", "cam", "--out", "/dev/full", "--timeout", "20s"]);
    full.said(1, "--out /dev/full: cannot write: No space left on device");
    assert!(full.stderr.contains("contains 0 whole samples, 0 bytes; free some space"), "{full:?}");
    let other = other.ended();
    assert_eq!(other.code, Some(0), "{other:?}");
    assert_eq!(other.json()[40]["summary"]["dropped"], serde_json::json!({}));
}

#[test]
fn a_folder_is_no_file() {
    let host = Host::new();
    let dir = host.path("");
    host.run(&["sub", "a", "--out", arg(&dir)]).said(1, "give a file that can be written");
}
