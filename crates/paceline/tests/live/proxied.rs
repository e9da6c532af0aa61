//! Links through an HTTP proxy.

use crate::support::{SOON, free_endpoint, wait_until};
use crate::trust::Authority;
use paceline::LinkConfig;
use std::io::{Read, Write, copy};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A proxy that knows only the method CONNECT, for users with this header.
struct Proxy {
    endpoint: String,
    passed: Arc<AtomicU32>,
    refused: Arc<AtomicU32>,
}

impl Proxy {
    fn open(credentials: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = listener.local_addr().unwrap().to_string();
        let [passed, refused] = [(); 2].map(|()| Arc::new(AtomicU32::new(0)));
        let (passes, refuses) = (passed.clone(), refused.clone());
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let (passes, refuses) = (passes.clone(), refuses.clone());
                std::thread::spawn(move || serve(near, credentials, &passes, &refuses));
            }
        });
        Self { endpoint, passed, refused }
    }
}

fn serve(mut near: TcpStream, credentials: &str, passes: &AtomicU32, refuses: &AtomicU32) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if near.read_exact(&mut byte).is_err() {
            return;
        }
        request.push(byte[0]);
    }
    let request = String::from_utf8(request).unwrap();
    let to = request.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next()).unwrap();
    if !request.contains(credentials) {
        refuses.fetch_add(1, Ordering::Relaxed);
        let _ = near.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
        return;
    }
    let Ok(far) = TcpStream::connect(to) else {
        let _ = near.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n");
        return;
    };
    passes.fetch_add(1, Ordering::Relaxed);
    near.write_all(b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n").unwrap();
    let pump = |mut from: TcpStream, mut to: TcpStream| {
        let _ = copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    };
    let (from, to) = (near.try_clone().unwrap(), far.try_clone().unwrap());
    std::thread::spawn(move || pump(from, to));
    pump(far, near);
}

#[test]
fn links_over_tcp_and_tls_pass_an_http_proxy() {
    // The header of user "me" with the password "secret".
    let proxy = Proxy::open("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n");
    for protocol in ["tcp", "tls"] {
        let authority = Authority::new(&format!("proxied-{protocol}"));
        let endpoint = free_endpoint().replace("tcp/", &format!("{protocol}/"));
        let link = |name: &str| {
            let link = LinkConfig::new("wire");
            if protocol == "tls" { authority.member(name, link) } else { link }
        };
        let near = authority.node("near", link("near").listen(&endpoint));
        let through = format!("http://me:secret@{}", proxy.endpoint);
        let far = authority.node("far", link("far").connect(&endpoint).proxy(&through));
        let mut publisher = near.publisher("x").declare().unwrap();
        let mut subscriber = far.subscriber("x").declare().unwrap();
        assert!(publisher.wait_matching(SOON), "{protocol}");
        publisher.put(vec![7; 100_000]).unwrap();
        assert_eq!(subscriber.recv_timeout(SOON).unwrap().payload.len(), 100_000);
    }
    assert_eq!(proxy.passed.load(Ordering::Relaxed), 2);
    let authority = Authority::new("proxied");
    let endpoint = free_endpoint();
    let _near = authority.node("near", LinkConfig::new("wire").listen(&endpoint));
    let through = format!("http://{}", proxy.endpoint);
    let far = LinkConfig::new("wire").connect(&endpoint).proxy(&through);
    let far = authority.node("far", far);
    wait_until("the proxy refuses", || proxy.refused.load(Ordering::Relaxed) > 0);
    assert_eq!(far.nodes().len(), 1);
}
