//! Symmetric keys: test vectors, key files, and clients and servers with right, wrong and missing keys.
#![cfg(test)]

use paceline_time::clock::service::ServerFacts;
use paceline_time::ntp::keys::{NtpKey, NtpKeys};
use paceline_time::ntp::seal::{NtpDatagram, SEALED_BYTES, Seal};
use paceline_time::ntp::source::{NtpSource, PollRange, Rejected};
use paceline_time::server::NtpServer;
use paceline_time::{ClockReading, ClockStatus, TimeBounds};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr};

const NOW: u64 = 1_795_737_600_000_000_000;
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] << 4 | pair[1]).unwrap()).collect()
}

#[test]
fn codes_are_those_of_the_standards() {
    let message = bytes(
        "6bc1bee22e409f96e93d7e117393172a ae2d8a571e03ac9c9eb76fac45af8e51 30c81c46a35ce411e5fbc1191a0a52ef \
         f69f2445df4f9b17ad2b417be66c3710",
    );
    let (short, long) = (
        bytes("2b7e1516 28aed2a6 abf71588 09cf4f3c"),
        bytes("603deb10 15ca71be 2b73aef0 857d7781 1f352c07 3b6108d7 2d9810a3 0914dff4"),
    );
    for (key, length, code) in [
        // RFC 4493, section 4.
        (&short, 0, "bb1d6929 e9593728 7fa37d12 9b756746"),
        (&short, 16, "070a16b4 6b4d4144 f79bdd9d d04a287c"),
        (&short, 40, "dfa66747 de9ae630 30ca3261 1497c827"),
        (&short, 64, "51f0bebf 7e3b9d92 fc497417 79363cfe"),
        // NIST SP 800-38B, appendix D.3.
        (&long, 16, "28a7023f 452e8f82 bd4bf28d 8c37c35c"),
        (&long, 64, "e1992190 549f6ed5 696a2c05 6c315410"),
    ] {
        let own = NtpKey::new(9, key).unwrap();
        let seal = |key, code| Seal::Code { key, signed: &message[..length], code };
        let code = bytes(code);
        assert!(seal(9, &code).is_by(&own), "{length} bytes");
        assert!(!seal(8, &code).is_by(&own) && !seal(9, &code[..15]).is_by(&own));
    }
    assert!(NtpKey::new(1, &[0; 24]).is_none());
}

const FILE: &str = "\
# Comments of chrony begin with one of four characters.
% percent
; semicolon
! exclamation mark

 7 AES128 HEX:000102030405060708090a0b0C0D0E0F
8\tAES256  ASCII:0123456789abcdef0123456789abcdef
9 AES128 0123456789abcdef
10 SHA1 HEX:0123
11 tulip
";

#[test]
fn key_files_of_chrony_are_read_and_wrong_lines_are_named() {
    let keys = NtpKeys::parse(FILE).unwrap();
    for id in 7..=9 {
        assert_eq!(keys.find(id).map(NtpKey::id), Ok(id));
    }
    for (id, parts) in [
        (10, ["line 9", "type SHA1", "AES128 or AES256"]),
        (11, ["line 10", "type MD5", "chronyc keygen 11 AES128"]),
        (12, ["key 12 is missing", "7, 8, 9, 10, 11", "add a line"]),
    ] {
        let error = keys.find(id).unwrap_err();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    assert!(NtpKeys::parse("").unwrap().find(1).is_err_and(|error| error.contains("no keys")));
    assert!(!format!("{keys:?}").contains("48, 49"), "the keys themselves are not printed");

    let hex = "HEX:000102030405060708090a0b0c0d0e0f";
    for (text, parts) in [
        (format!("0 AES128 {hex}"), ["line 1: number '0'", "from 1 to 4294967295"]),
        (format!("\n4294967296 AES128 {hex}"), ["line 2: number '4294967296'", "4294967295"]),
        (format!("x AES128 {hex}"), ["number 'x'", "followed by a type and a key"]),
        ("1".to_owned(), ["key 1 has 0 fields", "1 AES128 HEX:"]),
        (format!("1 AES128 {hex} more"), ["key 1 has 3 fields", "1 AES128 HEX:"]),
        (format!("1 AES192 {hex}"), ["type 'AES192' of key 1", "AES128 or AES256"]),
        (format!("1 AES128 {hex}00"), ["key 1: 17 bytes", "32 hexadecimal digits"]),
        (format!("1 AES256 {hex}"), ["key 1: 16 bytes", "64 hexadecimal digits"]),
        ("1 AES128 HEX:0g".to_owned(), ["wrong hexadecimal digits", "chronyc keygen 1 AES128"]),
        ("1 AES128 HEX:012".to_owned(), ["wrong hexadecimal digits", "32"]),
        ("1 AES128 short".to_owned(), ["key 1: 5 bytes", "16 characters"]),
        (format!("1 AES128 {hex}\n1 SHA1 x"), ["line 2: number '1'", "line 1 too"]),
    ] {
        let error = NtpKeys::parse(&text).unwrap_err();
        assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
    }
    let many: Vec<_> = (1..=4_097).map(|id| format!("{id} AES128 {hex}")).collect();
    assert!(NtpKeys::parse(&many.join("\n")).is_err_and(|error| error.contains("at most 4096")));
}

fn key(id: u32, byte: u8) -> NtpKey {
    NtpKey::new(id, &[byte; 16]).unwrap()
}

/// A server with key 7 of the bytes 1.
fn server() -> NtpServer {
    NtpServer::new(NtpKeys::parse(&format!("7 AES128 HEX:{}", "01".repeat(16))).unwrap())
}

fn ask(server: &mut NtpServer, request: &[u8]) -> NtpDatagram {
    let bounds = TimeBounds { earliest: NOW - 50_000, latest: NOW + 50_000 };
    let now = ClockReading { nanos: NOW, bounds, status: ClockStatus::Synchronised, epoch: 1 };
    let facts = ServerFacts { stratum: 2, ..ServerFacts::default() };
    server.answer(request, CLIENT, 0, &facts, (now, now)).unwrap()
}

/// A client with `key`, and its first request.
fn client(key: Option<NtpKey>) -> (NtpSource, NtpDatagram) {
    let mut source = NtpSource::new(PollRange::OWN, 0);
    key.into_iter().for_each(|key| source.set_key(key));
    let request = source.request(0, 77).unwrap();
    let datagram = source.datagram(&request);
    (source, datagram)
}

#[test]
fn only_answers_by_the_right_key_are_used() {
    let use_key = |key: Option<NtpKey>, server: &mut NtpServer| {
        let (mut source, request) = client(key);
        let answer = ask(server, &request);
        let taken = source.receive(&answer, 1_000, NOW);
        (taken, source.is_unauthenticated(), answer.len())
    };
    let (mut sealing, mut plain) = (server(), NtpServer::default());
    assert_eq!(use_key(Some(key(7, 1)), &mut sealing), (Ok(()), false, SEALED_BYTES));
    assert_eq!(use_key(None, &mut sealing), (Ok(()), false, 48));
    let refused = (Err(Rejected::KeyRefused), true, 52);
    assert_eq!(use_key(Some(key(7, 2)), &mut sealing), refused, "the same number, another key");
    assert_eq!(use_key(Some(key(8, 1)), &mut sealing), refused, "another number");
    assert_eq!(use_key(Some(key(7, 1)), &mut plain), refused, "a server without keys");
    assert_eq!((sealing.counters().answered, sealing.counters().unauthenticated), (2, 2));

    // A forged answer with the right nonce does not displace the right one.
    let (mut source, request) = client(Some(key(7, 1)));
    let answer = ask(&mut sealing, &request);
    assert_eq!(source.receive(&answer[..48], 1_000, NOW), Err(Rejected::Unauthenticated));
    let longer = [&answer[..48], &[0, 0, 0, 24], &[0; 20], &answer[48..]].concat();
    assert_eq!(source.receive(&longer, 1_000, NOW), Err(Rejected::Unauthenticated), "not covered");
    assert_eq!(source.receive(&answer, 1_000, NOW), Ok(()));
    assert!(!source.is_unauthenticated());
    assert_eq!(source.receive(&answer, 1_000, NOW), Err(Rejected::Unrequested), "a replay");
    // Also the kiss-of-death of a client that sends too often is sealed.
    let (_, request) = client(Some(key(7, 1)));
    let kiss = (0..40).map(|_| ask(&mut sealing, &request)).find(|answer| answer[1] == 0);
    assert!(Seal::of(&kiss.unwrap()).is_by(&key(7, 1)));
}

proptest! {
    #[test]
    fn no_changed_answer_is_used(at in 0..SEALED_BYTES, bit in 0..8_u8) {
        let (mut source, request) = client(Some(key(7, 1)));
        let mut answer = ask(&mut server(), &request).to_vec();
        answer[at] ^= 1 << bit;
        prop_assert!(source.receive(&answer, 1_000, NOW).is_err());
    }

    #[test]
    fn any_bytes_have_a_seal(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Seal::Code { signed, code, .. } = Seal::of(&bytes) {
            prop_assert_eq!(signed.len() + 4 + code.len(), bytes.len());
        }
    }
}
