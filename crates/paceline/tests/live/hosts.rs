//! Two network namespaces with a cable between them.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::os::fd::AsFd as _;
use std::process::Command;

/// Two hosts, 10.77.0.1 and 10.77.0.2, with the interface `eth`.
pub(crate) struct Hosts([String; 2]);

impl Hosts {
    /// Creates the hosts; `None` without the permission to do so.
    pub(crate) fn new(prefix: &str) -> Option<Self> {
        let names = [0, 1].map(|at| format!("{prefix}{at}-{}", std::process::id()));
        let hosts = Self(names);
        let [a, b] = &hosts.0;
        ip(&format!("netns add {a}")).then_some(())?;
        ip(&format!("netns add {b}")).then_some(())?;
        ip(&format!("-n {a} link add eth type veth peer name eth netns {b}")).then_some(())?;
        for (at, name) in hosts.0.iter().enumerate() {
            for words in [
                "link set lo up",
                &format!("addr add 10.77.0.{}/24 dev eth", at + 1),
                "link set eth up",
            ] {
                ip(&format!("-n {name} {words}")).then_some(())?;
            }
        }
        Some(hosts)
    }

    /// Runs `ip` on a host.
    pub(crate) fn ip(&self, host: usize, words: &str) {
        assert!(ip(&format!("-n {} {words}", self.0[host])), "ip {words}");
    }

    /// Runs `work` on a host. Sockets that it opens stay there.
    pub(crate) fn inside<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> T {
        let place = std::fs::File::open(format!("/run/netns/{}", self.0[host])).unwrap();
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
        for name in &self.0 {
            ip(&format!("netns del {name}"));
        }
    }
}

fn ip(words: &str) -> bool {
    let run = Command::new("ip").args(words.split(' ')).output();
    run.is_ok_and(|run| run.status.success())
}
