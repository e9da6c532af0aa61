use super::super::join::join;
use super::*;
use std::io::Write as _;
use std::net::TcpStream as Socket;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

fn authority(name: &str) -> (PathBuf, Authority) {
    let dir = std::env::temp_dir().join(format!("pl-invite-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    Authority::create(&dir).unwrap();
    let opened = Authority::open(&dir).unwrap();
    (dir, opened)
}

fn open() -> (Invitation, String, Code) {
    let invitation = Invitation::open("127.0.0.1:0", "robot", 30).unwrap();
    let address = format!("127.0.0.1:{}", invitation.port().unwrap());
    let code = invitation.code().clone();
    (invitation, address, code)
}

fn error(address: &str, code: &Code) -> String {
    format!("{:#}", join(address, code).err().unwrap())
}

#[test]
fn a_code_works_once_and_only_for_whom_it_names() {
    let (dir, authority) = authority("once");
    let (invitation, address, code) = open();
    let mut guessed = code.clone();
    guessed.secret[0] ^= 1;
    let mut other = code.clone();
    other.hash[0] ^= 1;
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| invitation.wait(&authority, || false));
        let why = error(&address, &guessed);
        assert!(why.contains("the code is wrong"), "{why}");
        let why = error(&address, &other);
        assert!(why.contains("TLS") && why.contains("its key is not in the code"), "{why}");
        let (key, issued) = join(&address, &code).unwrap();
        assert_eq!(issued.name, "robot");
        assert!(
            issued.certificate.contains("BEGIN CERTIFICATE") && !key.serialize_pem().is_empty()
        );
        waiting.join().unwrap().unwrap();
    });
    drop(invitation);
    let why = error(&address, &code);
    assert!(why.contains("cannot reach") && why.contains("refused"), "{why}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn silent_strangers_and_wrong_codes_do_not_keep_the_node_out() {
    let (dir, authority) = authority("strangers");
    let (invitation, address, code) = open();
    let mut guessed = code.clone();
    guessed.secret[9] ^= 1;
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| invitation.wait(&authority, || false));
        let begun = Instant::now();
        let mut silent: Vec<_> = (0..150).map(|_| Socket::connect(&address).unwrap()).collect();
        for (number, stream) in silent.iter_mut().enumerate() {
            // Nothing, the beginning of a handshake, or no TLS at all.
            let bytes = [&[][..], &[0x16, 3, 1, 2, 0, 1], b"GET / HTTP/1.1\r\n\r\n"][number % 3];
            let _ = stream.write_all(bytes);
        }
        for _ in 0..20 {
            let why = error(&address, &guessed);
            assert!(why.contains("the code is wrong"), "{why}");
        }
        join(&address, &code).unwrap();
        waiting.join().unwrap().unwrap();
        assert!(begun.elapsed() < EXCHANGE_WITHIN, "no stranger is waited for");
    });
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn an_invitation_that_ends_names_the_causes() {
    let (dir, authority) = authority("causes");
    let (invitation, address, code) = open();
    let mut guessed = code;
    guessed.secret[0] ^= 1;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| invitation.wait(&authority, || stop.load(Ordering::Relaxed)));
        let _ = (error(&address, &guessed), error(&address, &guessed));
        let mut plain = Socket::connect(&address).unwrap();
        plain.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let _ = plain.read_to_end(&mut Vec::new());
        let _slow = Socket::connect(&address).unwrap();
        std::thread::sleep(EXCHANGE_WITHIN + Duration::from_secs(1));
        stop.store(true, Ordering::Relaxed);
        let why = waiting.join().unwrap().unwrap_err().to_string();
        for part in [
            "interrupted: nobody has joined; failed attempts: ",
            "2 × wrong code (last from 127.0.0.1:",
            "1 × TLS failed: ",
            "1 × timed out: no TLS handshake within 10 s",
        ] {
            assert!(why.contains(part), "'{part}' is not in: {why}");
        }
    });
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_failure_of_the_authority_ends_the_invitation_with_its_cause() {
    let (dir, authority) = authority("failure");
    let (invitation, address, code) = open();
    std::fs::remove_dir_all(dir).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| invitation.wait(&authority, || false));
        let why = error(&address, &code);
        assert!(why.contains("the authority cannot issue a certificate"), "{why}");
        let why = format!("{:#}", waiting.join().unwrap().unwrap_err());
        assert!(why.contains("cannot write") && why.contains("No such file"), "{why}");
    });
}

#[test]
fn an_end_that_does_not_answer_is_named() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let (_, _, code) = open();
    let why = error(&address, &code);
    assert!(why.contains(&format!("{address} did not answer within 10 s")), "{why}");
    // The connection without an answer is still the first in the queue.
    let closes = std::thread::spawn(move || silent.incoming().take(2).for_each(drop));
    let why = error(&address, &code);
    assert!(why.contains("closed the connection without an answer"), "{why}");
    closes.join().unwrap();
}
