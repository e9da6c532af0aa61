//! Commands of the guides "Connect two machines", "Size a link", "Connect a ROS 2 robot" and "Record and open in Foxglove",
//! with two nodes on this host.

use crate::ffmpeg::shell;
use crate::host::{Host, LIMIT, Running, free_port};
use paceline_media::ros::{self, RosMessage};
use paceline_record::{Channel, McapReader};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(50);

fn guide(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// Returns the only line of the guide that begins with `begin` and contains `part`.
fn line<'a>(guide: &'a str, begin: &str, part: &str) -> &'a str {
    let mut lines = guide.lines().filter(|line| line.starts_with(begin) && line.contains(part));
    let found = lines.next().unwrap_or_else(|| panic!("the guide has no '{begin}' with {part}"));
    assert_eq!(lines.next(), None, "{found} is not the only one");
    found
}

/// Runs lines of guides on this host, with folders and a port of its own.
struct Lines {
    host: Host,
    port: String,
}

impl Lines {
    fn new() -> Self {
        Self { host: Host::new(), port: free_port().to_string() }
    }

    fn path(&self, name: &str) -> String {
        self.host.path(name).display().to_string()
    }

    /// Returns a line with the folders and the port of this host.
    fn here(&self, line: &str) -> String {
        let line = line.replace("/tmp/", &self.path(""));
        let line = line.replace(":7600", &format!(":{}", self.port));
        // The last replacement, because the checkout may be in /tmp.
        let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/");
        line.replace(" examples/", &format!(" {examples}"))
    }

    /// Starts a program, which replaces the shell, so that it ends with the test.
    fn start(&self, line: &str) -> Running {
        let replaced = format!("exec '{}' ", crate::BINARY);
        let line = self.here(line).replacen("paceline ", &replaced, 1);
        Running::gathered(shell(&self.host, &line).spawn().unwrap())
    }

    /// Runs a program to its end.
    fn done(&self, line: &str) -> String {
        let output = shell(&self.host, &self.here(line)).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

#[test]
fn two_nodes_meet_and_a_request_is_sized_as_in_the_guides() {
    let lines = Lines::new();
    let (start, done) = (|line: &str| lines.start(line), |line: &str| lines.done(line));
    let connect = guide("connect-two-machines.md");
    let _robot = start(line(&connect, "paceline node --name robot", "--runtime-dir /tmp/robot"));
    let _operator =
        start(line(&connect, "paceline node --name operator", "--runtime-dir /tmp/operator"));
    let _camera = start(line(&connect, "paceline pub robot/camera", "--runtime-dir /tmp/robot"));
    let sub = line(&connect, "paceline sub robot/camera", "--runtime-dir /tmp/operator");
    done(&format!("{sub} --count 5 --timeout 20s"));
    let size = guide("size-a-link.md");
    let ask = line(&size, "paceline sub robot/camera", "--dry-run");
    // The rate of the camera is known a moment later.
    let until = Instant::now() + LIMIT;
    loop {
        let output = shell(&lines.host, &lines.here(&format!("{ask} --runtime-dir /tmp/operator")))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if text.contains("robot/camera of pub-camera: yes: within ") {
            assert!(text.contains(" over radio of robot (2 Mbit/s)\n"), "{text}");
            break;
        }
        assert!(Instant::now() < until, "{text}");
        std::thread::sleep(PAUSE);
    }
    let _sub = start(&format!("{} --runtime-dir /tmp/operator", ask.replace(" --dry-run", "")));
    loop {
        let list = line(&size, "paceline ls --reservations", "");
        let table = done(&format!("{list} --runtime-dir /tmp/operator"));
        if table.contains("robot/camera")
            && table.contains("sub-camera")
            && table.contains(" 2 Mbit/s ")
        {
            break;
        }
        assert!(Instant::now() < until, "{table}");
        std::thread::sleep(PAUSE);
    }
}

/// Returns the name of the schema of each topic of a recording.
fn schemas(file: &Path) -> BTreeMap<String, String> {
    let mut reader = McapReader::new(std::fs::File::open(file).unwrap()).unwrap();
    let mut schemas = BTreeMap::new();
    while let Some(message) = reader.next_message().unwrap() {
        let Channel { topic, schema, .. } = &*message.channel;
        schemas.insert(topic.clone(), schema.clone());
    }
    schemas
}

#[test]
fn the_session_of_a_robot_plays_small_over_the_link_and_into_a_recording() {
    let lines = Lines::new();
    let ros = guide("ros2.md");
    let _robot = lines.start(line(&ros, "paceline node --name robot", "/tmp/robot"));
    let _operator = lines.start(line(&ros, "paceline node --name operator", "/tmp/operator"));
    let _session = lines.start(line(&ros, "paceline replay", "session.mcap"));
    let list = line(&ros, "paceline ls --tags", "/tmp/operator");
    let until = Instant::now() + LIMIT;
    while !lines.done(list).contains("robot/chatter/") {
        assert!(Instant::now() < until, "{}", lines.done(list));
        std::thread::sleep(PAUSE);
    }
    let sub = line(&ros, "paceline sub 'robot/camera", "/tmp/operator");
    lines.done(&format!("{sub} --count 3 --timeout 20s --out messages"));
    // Each has 80 * 60 pixels of 3 bytes and the same header.
    let messages = std::fs::read(lines.host.path("messages")).unwrap();
    for payload in messages.chunks(messages.len() / 3) {
        let size = ros::picture_size(RosMessage::Image, payload).unwrap();
        assert_eq!(size.to_string(), "80x60");
    }
    lines.done(line(&ros, "paceline record", "small.mcap"));
    let schemas = schemas(&lines.host.path("small.mcap"));
    for (topic, name) in [
        ("image_raw/sensor", "Image"),
        ("compressed/sensor", "CompressedImage"),
        ("imu/data", "Imu"),
    ] {
        let found =
            schemas.iter().find(|(tag, _)| tag.contains(topic)).map(|(_, name)| name.as_str());
        assert_eq!(found, Some(format!("sensor_msgs/msg/{name}").as_str()), "{schemas:?}");
    }
    lines.done("paceline judge small.mcap");
}

#[test]
fn the_sizes_of_the_guide_of_ros_are_below_that_of_its_session() {
    let session = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/ros2/session.mcap");
    let mut reader = McapReader::new(std::fs::File::open(session).unwrap()).unwrap();
    let mut pictures = Vec::new();
    while let Some(message) = reader.next_message().unwrap() {
        if message.channel.schema == "sensor_msgs/msg/Image" {
            pictures.extend(ros::picture_size(RosMessage::Image, &message.data));
        }
    }
    let least = pictures.iter().map(|size| (size.width, size.height)).min().unwrap();
    let text = guide("ros2.md");
    let flags = text.split("--size ").skip(1).map(|rest| rest.split(' ').next().unwrap());
    let settings = text.split("\nsize = \"").skip(1).map(|rest| rest.split('"').next().unwrap());
    let sizes: Vec<&str> = flags.chain(settings).collect();
    assert!(sizes.len() >= 4, "{sizes:?}");
    for text in sizes {
        let size: paceline_media::Size = text.parse().unwrap();
        assert!((size.width, size.height) < least, "{text} is not below {least:?}");
    }
}
