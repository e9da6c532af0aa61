//! Network namespaces with a cable or a switch between them.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::os::fd::AsFd as _;
use std::process::Command;

/// Hosts 10.77.0.1, 10.77.0.2 and so on, with the interface `eth`.
pub(crate) struct Hosts {
    names: Vec<String>,
    /// The namespace of the switch, if there is one. Its port to host N is `portN`.
    switch: Option<String>,
}

impl Hosts {
    /// Creates two hosts with a cable between them; `None` without the permission to do so.
    pub(crate) fn new(prefix: &str) -> Option<Self> {
        let hosts = Self::create(prefix, 2, false)?;
        if let [a, b] = &hosts.names[..] {
            ip(&format!("-n {a} link add eth type veth peer name eth netns {b}")).then_some(())?;
        }
        hosts.start()
    }

    /// Creates `count` hosts on a switch that passes all multicast; `None` without the permission to do so.
    pub(crate) fn segment(prefix: &str, count: usize) -> Option<Self> {
        let hosts = Self::create(prefix, count, true)?;
        let switch = hosts.switch.as_ref()?;
        ip(&format!("-n {switch} link add name hub type bridge mcast_snooping 0")).then_some(())?;
        ip(&format!("-n {switch} link set hub up")).then_some(())?;
        for (at, name) in hosts.names.iter().enumerate() {
            ip(&format!("-n {switch} link add port{at} type veth peer name eth netns {name}"))
                .then_some(())?;
            ip(&format!("-n {switch} link set port{at} master hub up")).then_some(())?;
        }
        hosts.start()
    }

    fn create(prefix: &str, count: usize, has_switch: bool) -> Option<Self> {
        let name = |at| format!("{prefix}{at}-{}", std::process::id());
        let switch = has_switch.then(|| name(count));
        let hosts = Self { names: (0..count).map(name).collect(), switch };
        let mut all = hosts.names.iter().chain(&hosts.switch);
        all.all(|name| ip(&format!("netns add {name}"))).then_some(hosts)
    }

    fn start(self) -> Option<Self> {
        for (at, name) in self.names.iter().enumerate() {
            for words in [
                "link set lo up",
                &format!("addr add 10.77.0.{}/24 dev eth", at + 1),
                "link set eth up",
            ] {
                ip(&format!("-n {name} {words}")).then_some(())?;
            }
        }
        Some(self)
    }

    /// Sets whether the switch passes multicast to a host.
    pub(crate) fn pass_multicast(&self, host: usize, passes: bool) {
        let (switch, how) = (self.switch.as_ref().unwrap(), if passes { "on" } else { "off" });
        let words =
            format!("-n {switch} link set dev port{host} type bridge_slave mcast_flood {how}");
        assert!(ip(&words), "ip {words}");
    }

    /// Lets the switch drop this part of the packets to a host, in percent, at random. May be called once per host.
    pub(crate) fn lose(&self, host: usize, percent: u32) {
        let switch = self.switch.as_ref().unwrap();
        // Classic BPF, because not every kernel has netem: load a random number, drop (2) below the limit, else pass (0).
        let limit = u64::from(percent) * (1 << 32) / 100;
        let program = format!("4,32 0 0 4294963256,53 0 1 {limit},6 0 0 0,6 0 0 2");
        let run = |words: &[&str]| {
            let run = Command::new("tc").args(["-n", switch]).args(words).output().unwrap();
            assert!(run.status.success(), "tc {words:?}: {}", String::from_utf8_lossy(&run.stderr));
        };
        let port = format!("port{host}");
        run(&["qdisc", "add", "dev", &port, "clsact"]);
        run(&["filter", "add", "dev", &port, "egress", "bpf", "da", "bytecode", &program]);
    }

    /// Returns the bytes that a host has sent on its interface.
    pub(crate) fn sent_bytes(&self, host: usize) -> u64 {
        let table = self.inside(host, || std::fs::read_to_string("/proc/thread-self/net/dev"));
        let table = table.unwrap();
        let row = table.lines().find_map(|line| line.trim().strip_prefix("eth:")).unwrap();
        row.split_whitespace().nth(8).unwrap().parse().unwrap()
    }

    /// Runs `ip` on a host.
    pub(crate) fn ip(&self, host: usize, words: &str) {
        assert!(ip(&format!("-n {} {words}", self.names[host])), "ip {words}");
    }

    /// Runs `work` on a host. Sockets that it opens stay there.
    pub(crate) fn inside<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> T {
        let place = std::fs::File::open(format!("/run/netns/{}", self.names[host])).unwrap();
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                move_into_link_name_space(place.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                work()
            });
            inside.join().unwrap()
        })
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in self.names.iter().chain(&self.switch) {
            ip(&format!("netns del {name}"));
        }
    }
}

fn ip(words: &str) -> bool {
    let run = Command::new("ip").args(words.split(' ')).output();
    run.is_ok_and(|run| run.status.success())
}
