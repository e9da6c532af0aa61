//! Links between link-local addresses, whose zones name an interface.

use crate::hosts::Hosts;
use crate::support::{SOON, isolated};
use crate::trust::Authority;
use paceline::{LinkConfig, Node, resolve_address};
use std::net::SocketAddr;
use std::time::Duration;

/// Sends a sample from one node to the other.
fn carries(robot: &Node, operator: &Node, what: &str) {
    let mut steer = operator.publisher("steer").declare().unwrap();
    let mut commands = robot.subscriber("steer").declare().unwrap();
    assert!(steer.wait_matching(SOON), "{what}");
    steer.put("left").unwrap();
    assert!(commands.recv_timeout(SOON).is_ok(), "{what}");
}

#[test]
fn link_local_addresses_name_their_interface() {
    let Some(hosts) = Hosts::new("pl-zo") else {
        println!(
            "link_local_addresses_name_their_interface: skipped, it needs root and the command ip"
        );
        return;
    };
    for host in 0..2 {
        hosts.ip(host, &format!("addr add fe80::{}/64 dev eth nodad", host + 1));
    }
    let number = |host| {
        let found = hosts.inside(host, || resolve_address("[fe80::1%eth]:1")).unwrap();
        match found.first() {
            Some(SocketAddr::V6(address)) => address.scope_id(),
            other => panic!("{other:?}"),
        }
    };
    let authority = Authority::new("zones");
    let numbers = [number(0).to_string(), number(1).to_string()];
    for (port, protocol) in (7_600..).zip(["tcp", "tls", "quic"]) {
        for (port, zones) in (port..).step_by(10).zip([
            ["eth", "eth"],
            ["25eth", "25eth"],
            [numbers[0].as_str(), numbers[1].as_str()],
        ]) {
            let [here, there] = zones.map(|zone| format!("{protocol}/[fe80::1%{zone}]:{port}"));
            let open = |name: &str, shape: &dyn Fn(LinkConfig) -> LinkConfig| match protocol {
                "tcp" => isolated(name, [shape(LinkConfig::new("radio").insecure())]),
                _ => authority.node(name, shape(authority.member(name, LinkConfig::new("radio")))),
            };
            let robot = hosts.inside(0, || open("robot", &|link| link.listen(&here)));
            let operator = hosts.inside(1, || open("operator", &|link| link.connect(&there)));
            carries(&robot, &operator, &there);
        }
    }
}

#[test]
fn an_unknown_interface_is_named() {
    let listen = LinkConfig::new("radio").insecure().listen("tcp/[fe80::1%nosuchif0]:7600");
    let opened = Node::builder().isolated().link(listen).open();
    let error = opened.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(
        error.contains("[fe80::1%nosuchif0]:7600: this host has no interface 'nosuchif0'"),
        "{error}"
    );
    // An end that connects waits: the interface may appear later.
    let connect = LinkConfig::new("radio").connect("tcp/[fe80::1%nosuchif0]:7600");
    let node = isolated("waits", [connect]);
    std::thread::sleep(Duration::from_millis(50));
    drop(node);
}
