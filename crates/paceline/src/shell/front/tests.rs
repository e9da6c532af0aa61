use super::*;
use std::net::UdpSocket as Socket;

const PATIENCE: Duration = Duration::from_secs(10);

fn socket() -> Socket {
    let socket = Socket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// A forwarder on a free port, and a socket in place of Zenoh's.
fn front() -> (Standing, SocketAddr, Socket) {
    let link = LinkConfig::new("radio").listen("udp/127.0.0.1:0");
    let fronts = Fronts::take(&link).unwrap();
    let public = fronts.sockets[0].1.local_addr().unwrap();
    let zenoh = Socket::bind(fronts.places.0.values().next().unwrap()).unwrap();
    zenoh.set_read_timeout(Some(PATIENCE)).unwrap();
    (fronts.stand("radio", |_| false).unwrap().unwrap(), public, zenoh)
}

fn receive(socket: &Socket) -> (Vec<u8>, SocketAddr) {
    let mut bytes = [0; 100];
    let (len, from) = socket.recv_from(&mut bytes).unwrap();
    (bytes[..len].to_vec(), from)
}

#[test]
fn an_unanswered_peer_gets_no_second_datagram_through() {
    let (_standing, public, zenoh) = front();
    let (hostile, peer) = (socket(), socket());
    // Fewer than the socket buffer takes: the peer's message must not be lost.
    for number in 0..100 {
        hostile.send_to(&[number, 7], public).unwrap();
        hostile.send_to(&[INIT, number], public).unwrap();
    }
    peer.send_to(&[INIT, 0xff], public).unwrap();
    let first = receive(&zenoh);
    let second = receive(&zenoh);
    assert_eq!(
        (first.0.len(), second.0),
        (2, vec![INIT, 0xff]),
        "one of them, and then the peer's"
    );
    assert_eq!(first.0[0] & INIT_MASK, INIT);
    // After two answers all datagrams of the peer pass.
    for answer in 0..2 {
        zenoh.send_to(&[answer], second.1).unwrap();
        assert_eq!(receive(&peer), (vec![answer], public));
        peer.send_to(&[40 + answer], public).unwrap();
        assert_eq!(receive(&zenoh).0, [40 + answer]);
    }
    (0..20).for_each(|number| assert!(peer.send_to(&[100 + number], public).is_ok()));
    let all: Vec<_> = (0..20).map(|_| receive(&zenoh).0).collect();
    assert_eq!(all, (100..120).map(|number| vec![number]).collect::<Vec<_>>());
}

#[test]
fn zenoh_listens_on_this_host_only() {
    let link = LinkConfig::new("radio").listen("udp/127.0.0.1:0").connect("udp/10.0.0.1:7600");
    let fronts = Fronts::take(&link).unwrap();
    let behind = fronts.places.behind(&link);
    assert!(behind.listen[0].starts_with("udp/127.0.0.1:") && behind.listen != link.listen);
    assert_eq!(behind.connect, link.connect);
    for endpoint in ["tcp/127.0.0.1:0", "udp/127.0.0.1:0#iface=lo"] {
        let link = LinkConfig::new("radio").listen(endpoint);
        assert_eq!(Fronts::take(&link).unwrap().places.behind(&link).listen, link.listen);
    }
}

#[test]
fn zenoh_gets_a_new_socket_when_it_stops_reading() {
    let link = LinkConfig::new("radio").listen("udp/127.0.0.1:0");
    let fronts = Fronts::take(&link).unwrap();
    let public = fronts.sockets[0].1.local_addr().unwrap();
    let _stuck = Socket::bind(fronts.places.0.values().next().unwrap()).unwrap();
    let (opened, place) = std::sync::mpsc::channel();
    let reopen = move |places: &Places| {
        let socket = Socket::bind(places.0.values().next().unwrap()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        opened.send(socket).is_ok()
    };
    let _standing = fronts.stand("radio", reopen).unwrap().unwrap();
    let (peer, next) = (socket(), socket());
    peer.send_to(&[INIT, 1], public).unwrap();
    let zenoh = place.recv_timeout(PATIENCE).unwrap();
    // Until the forwarder uses the new address, datagrams reach the old one.
    zenoh.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut bytes = [0; 100];
    let arrived = (0..50).any(|_| {
        socket().send_to(&[INIT, 2], public).unwrap();
        next.send_to(&[INIT, 2], public).unwrap();
        zenoh.recv(&mut bytes).is_ok()
    });
    assert!(arrived);
}
