//! Questions and changes that the member has no right to, in its own name and in the names of others.

use crate::attacks::{Means, forge};
use crate::session::{CHANGES, FOREIGN, Session};
use bytes::Bytes;
use paceline_proto::control::{
    ChangeAnswer, Control, ControlOutput, HopInfo, PublisherSpec, SubscriptionSpec, Topic,
};
use paceline_proto::pull::{Answer, Find, Question, Selection};
use paceline_proto::{NodeId, Pattern, PublisherId, SubscriptionId, Tag};
use paceline_sched::Instant as Now;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The identities that speak: that of the session, and forged ones.
struct Speakers {
    forged: Vec<Control>,
    /// The questions of the session by their numbers.
    asked: BTreeMap<u64, Topic>,
    count: u64,
}

/// Asks every kind of question and subscribes and publishes without rights, until the time is over.
pub(crate) async fn ask(means: Means) -> String {
    let verbs = std::thread::spawn({
        let means = means.clone();
        move || use_verbs(&means)
    });
    let asked = ask_raw(&means).await;
    let verbs = verbs.join().unwrap();
    match asked {
        Ok((asked, answers)) => {
            format!("asked {asked} raw questions, got {answers} answers; {verbs} verbs of a node")
        }
        Err(error) => format!("the raw connection ended: {error}; {verbs} verbs of a node"),
    }
}

fn wants(pattern: &str) -> SubscriptionSpec {
    SubscriptionSpec::all_of(Pattern::new(pattern).unwrap())
}

/// Returns the bodies of questions of each kind, except changes.
fn bodies() -> Vec<(Topic, Bytes)> {
    let plain = |topic: Topic, rest: &[u8]| (topic, Bytes::from([&[topic.code()], rest].concat()));
    let mut all = vec![
        plain(Topic::Status, &[]),
        plain(Topic::Feedback, &[0, 1, 2, 3, 4]),
        plain(Topic::Passages, &[0; 10]),
        plain(Topic::Room, &[0; 40]),
        plain(Topic::Excess, &[0; 20]),
        plain(Topic::Refused, &[0; 20]),
        plain(Topic::Outcome, &[0, 1]),
        plain(Topic::Relax, &[0; 13]),
        plain(Topic::Warning, &[0; 24]),
        plain(Topic::Time, &[0; 48]),
    ];
    for tag in ["secret/a", "work/0", "p/cmd"] {
        let tag = Tag::new(tag).unwrap();
        all.push((Topic::Pull, Question::Order { tag: tag.clone(), samples: 5 }.encode()));
        let selection = Selection::newest(5).unwrap();
        let rate = paceline_proto::Rate::default();
        let find = Find { tag, selection, publisher: None, rate, after: None };
        all.push((Topic::Pull, Question::Find(find).encode()));
    }
    all
}

async fn ask_raw(means: &Means) -> io::Result<(u64, usize)> {
    let now = Now::from_millis(1);
    let mut session = Session::join(&means.dialler, 100).await?;
    for pattern in ["**", "secret/**", "work/*", "pub/a"] {
        session.control.subscribe(now, wants(pattern));
    }
    let tags = ["work/0", "secret/a", "p/cmd", "watched"].map(|tag| Tag::new(tag).unwrap());
    let published: Vec<_> =
        tags.into_iter().map(|tag| session.control.publish(now, PublisherSpec::new(tag))).collect();
    session.turn(Duration::from_millis(300)).await?;
    let others: Vec<_> = session.control.nodes().map(|view| view.id).collect();
    let targets: Vec<_> = others.into_iter().filter(|id| *id != session.id).collect();
    let forged = targets.iter().copied().chain([NodeId(77)]).map(|id| {
        let mut control = Control::new(id, "console");
        // A node does not neighbour itself.
        let next = if id == session.victim { session.id } else { session.victim };
        control.handle_hop_up(now, next, HopInfo::new("radio".to_owned(), None));
        control
    });
    let mut speakers = Speakers { forged: forged.collect(), asked: BTreeMap::new(), count: 0 };
    while speakers.count == 0 || !means.is_over() {
        speakers.round(&mut session, &targets).await?;
        for (stream, id) in (0..).zip(&published) {
            forge(&mut session, stream, *id).await?;
        }
        for stream in 0..4 {
            let publisher = PublisherId { node: session.victim, index: stream };
            forge(&mut session, 10 + stream, publisher).await?;
        }
    }
    session.turn(Duration::from_millis(200)).await?;
    speakers.check(&session);
    Ok((speakers.count, session.answers.len()))
}

impl Speakers {
    /// Asks each target each question, in each name.
    async fn round(&mut self, session: &mut Session, targets: &[NodeId]) -> io::Result<()> {
        let now = Now::from_millis(1);
        for target in targets {
            for (topic, body) in bodies() {
                let request = session.control.ask(now, *target, body.clone());
                self.asked.insert(request, topic);
                self.forged.iter_mut().for_each(|it| _ = it.ask(now, *target, body.clone()));
                self.count += 1 + self.forged.len() as u64;
            }
            for index in 0..6 {
                let id = SubscriptionId { node: *target, index };
                for spec in [wants("work/*"), wants("watched"), wants("own/*")] {
                    let request = session.control.change_subscription(now, id, &spec);
                    self.asked.insert(request, Topic::Change);
                    for forged in &mut self.forged {
                        forged.change_subscription(now, id, &spec);
                    }
                    self.count += 1 + self.forged.len() as u64;
                }
            }
            for forged in &mut self.forged {
                while let Some(output) = forged.poll_output() {
                    if let ControlOutput::Send { message, .. } = output {
                        session.say(&message).await?;
                    }
                }
            }
            session.turn(Duration::from_millis(20)).await?;
        }
        Ok(())
    }

    /// Counts the answers that the member has no right to.
    fn check(&self, session: &Session) {
        for (request, body) in &session.answers {
            let names = |tag: &[u8]| body.windows(tag.len()).any(|it| it == tag);
            let (foreign, changed) = match self.asked.get(request) {
                Some(Topic::Change) => {
                    let answer = ChangeAnswer::decode(body.clone());
                    (false, matches!(answer, Ok(ChangeAnswer::Done { .. })))
                }
                Some(Topic::Pull) => match Answer::decode(body.clone()) {
                    Ok(Answer::Held(found)) => {
                        (found != paceline_proto::pull::Found::default(), false)
                    }
                    Ok(Answer::Ordered) => (false, true),
                    _ => (false, false),
                },
                _ => (names(b"work/") || names(b"secret"), false),
            };
            FOREIGN.fetch_add(foreign.into(), Ordering::Relaxed);
            CHANGES.fetch_add(changed.into(), Ordering::Relaxed);
        }
    }
}

/// Uses the verbs of an ordinary node; returns their number.
fn use_verbs(means: &Means) -> u32 {
    let node = means.node();
    let until = std::time::Instant::now() + Duration::from_secs(5);
    while node.nodes().len() < 2 && std::time::Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut held = ["**", "secret/*", "work/0"].map(|it| node.subscriber(it).declare().unwrap());
    let reserved = node.subscriber("work/1").within(Duration::from_millis(100));
    let mut reserved = reserved.declare().unwrap();
    let mut command = node.publisher("work/2").declare().unwrap();
    let (short, mut verbs) = (Duration::from_millis(300), 0);
    while !means.is_over() {
        command.put(vec![b'h'; 60]).unwrap();
        for (id, _) in node.nodes().into_iter().filter(|(id, _)| *id != node.id()) {
            let seen = node.status_of(&[id], short);
            FOREIGN.fetch_add(seen.len() as u64, Ordering::Relaxed);
            // A change that nobody answers takes seconds.
            for index in (0..6).take_while(|_| !means.is_over()) {
                let changed =
                    node.change(SubscriptionId { node: id, index }, |now| now.max_hz(1.0));
                CHANGES.fetch_add(changed.is_ok().into(), Ordering::Relaxed);
            }
        }
        let pulled = node.pull("secret/a").newest(1).timeout(short).run();
        let sample = pulled.is_ok_and(|mut it| matches!(it.next_timeout(short), Ok(Some(_))));
        FOREIGN.fetch_add(sample.into(), Ordering::Relaxed);
        let ordered = node.pull("secret/a").hold_at("victim", 5).timeout(short).run();
        CHANGES.fetch_add(ordered.is_ok().into(), Ordering::Relaxed);
        let all = held.iter_mut().chain([&mut reserved]);
        for sample in all.flat_map(|it| std::iter::from_fn(|| it.try_recv())) {
            let own = sample.publisher.node == node.id() || sample.payload.starts_with(b"pub/");
            FOREIGN.fetch_add(u64::from(!own), Ordering::Relaxed);
        }
        verbs += 12;
    }
    verbs
}
