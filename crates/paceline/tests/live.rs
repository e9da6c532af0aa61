//! Nodes of one process over real Zenoh sessions and real sockets.

use paceline::Node;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A folder of its own for the processes of one imagined host.
struct HostDir(PathBuf);

impl HostDir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("pl-{name}-{}", std::process::id()));
        Self(dir)
    }

    fn open(&self, name: &str) -> Node {
        Node::builder().name(name).runtime_dir(&self.0).open().unwrap()
    }
}

impl Drop for HostDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const SOON: Duration = Duration::from_secs(5);

#[test]
fn two_processes_of_a_host_meet_without_configuration() {
    let host = HostDir::new("meet");
    let (a, b) = (host.open("a"), host.open("b"));
    let mut publisher = a.publisher("robot/pose").unwrap().declare().unwrap();
    let mut subscriber = b.subscriber("robot/**").unwrap().declare().unwrap();
    let began = Instant::now();
    assert!(publisher.wait_matching(SOON));
    println!("met after {:?}", began.elapsed());
    for n in 0..10u8 {
        assert_eq!(publisher.put(vec![n]).unwrap().taken, 1);
    }
    for n in 0..10u8 {
        let sample = subscriber.recv_timeout(SOON).unwrap();
        assert_eq!((sample.seq, &sample.payload[..]), (u64::from(n), &[n][..]));
        assert_eq!(sample.tag.as_str(), "robot/pose");
        println!("age {:?}", sample.age);
    }
    let status = a.status(Duration::from_secs(2));
    assert_eq!(status.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    println!("{status:#?}");
}
