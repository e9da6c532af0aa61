//! Films of a variable bit rate share a link by their envelopes.

use crate::support::{SOON, pair, wait_until};
use paceline::{Capacity, Encoding, Node, Publisher, Subscriber};
use paceline_media::codec::Codec;
use std::time::{Duration, Instant};

/// The number of films that ask for a contract, and pictures per second.
const FILMS: usize = 16;
const HZ: u32 = 3;
const WITHIN: Duration = Duration::from_millis(2_500);

/// Returns the pictures of the 720p film, or generated ones of the same sizes on average.
fn pictures() -> Vec<Vec<u8>> {
    let Some(folder) = std::env::var_os("PACELINE_DATA") else {
        println!("skipped: the recorded film (PACELINE_DATA is not set)");
        let size = |number: usize| if number.is_multiple_of(150) { 90_000 } else { 8_000 };
        return (0..300).map(|number| vec![0; size(number)]).collect();
    };
    let file = std::path::Path::new(&folder).join("video/cisco_1280x720_bframes.264");
    let stream = std::fs::read(file).unwrap();
    Codec::H264.split(&stream).map(|unit| unit.unwrap().bytes.to_vec()).collect()
}

/// The mean rate in bits per second, a tenth above that of the pictures, and the most bytes at once.
fn traffic(pictures: &[Vec<u8>]) -> (u64, u64) {
    let all: usize = pictures.iter().map(Vec::len).sum();
    let served = (all + all / 10) / pictures.len();
    let mut waiting = 0_usize;
    let backlogs = pictures.iter().chain(pictures).map(|picture| {
        waiting = waiting.saturating_sub(served) + picture.len();
        waiting
    });
    let most = backlogs.max().unwrap();
    (8 * served as u64 * u64::from(HZ), (most + 3 * served) as u64)
}

/// Films at one end of a link of 4 Mbit/s, and their subscribers at the other.
struct Cinema {
    publishers: Vec<Publisher>,
    subscribers: Vec<Subscriber>,
    _nodes: (Node, Node),
}

impl Cinema {
    fn new(films: usize, largest: u64, traffic: Option<(u64, u64)>) -> Self {
        let capacity = Capacity::from_bits_per_s(4_000_000).unwrap();
        let nodes = pair(|link| link.capacity(capacity));
        let publish = |number: usize| {
            // The kind data: each sample counts, and none is shed as video would be.
            let film = nodes.0.publisher(&format!("film/{number}")).encoding(Encoding::Bytes);
            let film = film.hz(f64::from(HZ));
            match traffic {
                Some((bits, burst)) => film.bytes_max(largest).traffic(bits, burst).declare(),
                None => film.bytes_max(largest).declare(),
            }
        };
        let publishers: Vec<_> = (0..films).map(|number| publish(number).unwrap()).collect();
        let subscribe = |number: usize| {
            nodes.1.subscriber(&format!("film/{number}")).within(WITHIN).queue(64).declare()
        };
        let subscribers = (0..films).map(|number| subscribe(number).unwrap()).collect();
        Self { publishers, subscribers, _nodes: nodes }
    }

    /// Waits until each film has an answer, and returns the number of grants.
    fn granted(&self) -> usize {
        let mut granted = 0;
        wait_until("each request is answered", || {
            let feedback = || self.publishers.iter().flat_map(|film| film.feedback(SOON));
            granted = feedback().filter(|it| it.grant.is_some()).count();
            let refused = feedback().filter(|it| it.refusal.is_some()).count();
            granted + refused == self.publishers.len()
        });
        granted
    }

    /// Plays each film from another picture on.
    fn play(&mut self, pictures: &[Vec<u8>], time: Duration) {
        let (begun, films) = (Instant::now(), self.publishers.len());
        for number in 0.. {
            let due = begun + Duration::from_secs(1) * number / HZ;
            if due > begun + time {
                return;
            }
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            for (place, film) in self.publishers.iter_mut().enumerate() {
                let at = number as usize + place * pictures.len() / films;
                film.put(pictures[at % pictures.len()].clone()).unwrap();
            }
            for film in &mut self.subscribers {
                while film.try_recv().is_some() {}
            }
        }
    }
}

fn play(time: Duration) {
    let pictures = pictures();
    let largest = pictures.iter().map(Vec::len).max().unwrap() as u64;
    let peak = Cinema::new(FILMS, largest, None).granted();
    let admitted = Cinema::new(FILMS, largest, Some(traffic(&pictures))).granted();
    assert!(admitted >= 2 * peak.max(1), "{admitted} with envelopes, {peak} without");
    let mut cinema = Cinema::new(admitted, largest, Some(traffic(&pictures)));
    assert_eq!(cinema.granted(), admitted);
    cinema.play(&pictures, time);
    std::thread::sleep(WITHIN);
    let (mut delivered, mut late, mut dropped, mut excess) = (0, 0, 0, 0);
    for (film, subscriber) in cinema.publishers.iter().zip(&cinema.subscribers) {
        let [feedback] = &film.feedback(SOON)[..] else { panic!("one subscription") };
        assert!(feedback.grant.is_some(), "the contract stays");
        excess += feedback.excess.long + feedback.excess.early;
        let measured = feedback.measured.unwrap();
        (delivered, late) =
            (delivered + measured.delivered, late + measured.late - measured.overdue);
        dropped += subscriber.drops().total();
    }
    println!(
        "4 Mbit/s, films at {HZ} Hz within 2.5 s: {admitted} admitted with envelopes, {peak} by their largest \
         picture; {delivered} pictures in {} s, {late} late, {dropped} dropped, {excess} policed",
        time.as_secs()
    );
    assert_eq!((late, dropped, excess), (0, 0, 0));
    assert!(delivered >= admitted as u64 * u64::from(HZ) * time.as_secs());
}

#[test]
fn at_least_twice_as_many_films_fit_by_their_envelopes() {
    play(Duration::from_secs(8));
}

#[test]
#[ignore = "ten minutes: cargo xtask long runs it"]
fn ten_times_a_minute_of_films_by_their_envelopes() {
    play(Duration::from_secs(600));
}

/// Without a declaration, a contract that is refused by the largest picture is granted once the traffic is known.
fn learn(time: Duration) -> (u64, u64) {
    let pictures = pictures();
    let mut cinema = Cinema::new(3, 97_300, None);
    let before = cinema.granted();
    cinema.play(&pictures, time);
    let after: Vec<_> = cinema.publishers.iter().flat_map(|film| film.feedback(SOON)).collect();
    let granted = after.iter().filter_map(|it| it.grant.as_ref());
    let learned = granted.filter(|grant| grant.learned).count();
    let excess: u64 = after.iter().map(|it| it.excess.long).sum();
    let published = 3 * u64::from(HZ) * time.as_secs();
    println!(
        "{before} granted by the largest picture, {learned} as learned; {excess} of {published} policed"
    );
    assert!(before < 3 && learned == 3, "{after:?}");
    (excess, published)
}

#[test]
#[ignore = "ten minutes: cargo xtask long runs it"]
fn ten_times_a_minute_of_learned_envelopes() {
    let (excess, published) = learn(Duration::from_secs(600));
    assert!(excess * 1_000 <= published, "{excess} of {published}");
}

#[test]
fn a_refused_film_is_granted_once_its_traffic_is_known() {
    // The 50 samples take longer than the ten seconds.
    learn(Duration::from_secs(24));
}
