//! Feeds valid and malformed control messages to a `Control`.

use crate::input::Input;
use bytes::Bytes;
use paceline_proto::control::{
    Control, ControlOutput, Elastic, HopInfo, PublisherSpec, SubscriptionSpec, rewrite_message,
};
use paceline_proto::{
    Encoding, Form, Kind, NodeId, Pattern, Proxy, PublisherId, Size, SubscriptionId, Tag,
};
use paceline_sched::{Capacity, Duration, Instant, Late};

const ME: NodeId = NodeId(1);
/// A neighbour that follows the protocol.
const HONEST: NodeId = NodeId(2);
/// Neighbours that send arbitrary messages.
const STRANGERS: [NodeId; 2] = [NodeId(3), NodeId(4)];
/// More messages than two nodes can need to exchange all changes of one history.
const MESSAGES_MAX: usize = 20_000;
const STEPS_MAX: usize = 500;

/// Runs `data` as a sequence of steps: messages from strangers and local changes of the node.
pub fn control(data: &[u8]) {
    let mut input = Input::new(data);
    let mut pair = Pair::new();
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        pair.step(&mut input);
        pair.talk();
    }
}

struct Pair {
    now: Instant,
    me: Control,
    honest: Control,
    joined: bool,
    last: Bytes,
}

impl Pair {
    fn new() -> Self {
        let (me, honest) = (Control::new(ME, "me"), Control::new(HONEST, "honest"));
        let now = Instant::from_millis(1);
        let mut pair = Self { now, me, honest, joined: false, last: Bytes::new() };
        pair.join();
        pair.me.handle_hop_up(now, STRANGERS[0], hop_info(0));
        pair.talk();
        pair
    }

    fn join(&mut self) {
        self.joined = !self.joined;
        if self.joined {
            self.me.handle_hop_up(self.now, HONEST, hop_info(0));
            self.honest.handle_hop_up(self.now, ME, hop_info(0));
        } else {
            self.me.handle_hop_down(self.now, HONEST);
            self.honest.handle_hop_down(self.now, ME);
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let (now, step) = (self.now, input.byte());
        match step % 16 {
            0..8 => {
                let len = usize::from(input.u16());
                self.last = input.take(len).to_vec().into();
                self.hear(STRANGERS[usize::from(step >> 7)]);
            }
            8 => self.hear(STRANGERS[0]),
            9 => self.pass(u64::from(input.byte()) * 40),
            10 => drop(self.me.publish(now, publisher(input))),
            11 => drop(self.me.subscribe(now, subscription(input))),
            12 => self.change(input),
            13 => self.join(),
            14 => {
                let (stranger, bytes) = (input.one_of(&STRANGERS), input.byte());
                self.me.handle_hop_up(now, stranger, hop_info(u64::from(bytes) << 12));
            }
            _ => self.me.handle_hop_down(now, input.one_of(&STRANGERS)),
        }
    }

    fn change(&mut self, input: &mut Input<'_>) {
        let (what, index) = (input.below(4), u32::from(input.below(4)));
        let publisher_id = PublisherId { node: ME, index };
        let subscription_id = SubscriptionId { node: ME, index };
        match what {
            0 => self.me.unpublish(self.now, publisher_id),
            1 => self.me.unsubscribe(self.now, subscription_id),
            2 => self.me.update_publisher(self.now, publisher_id, publisher(input)),
            _ => self.me.update_subscription(self.now, subscription_id, subscription(input)),
        }
    }

    /// Delivers a message. A rejected message must change nothing, and an accepted one must be writable.
    fn hear(&mut self, from: NodeId) {
        let (before, rejected) = (summary(&self.me), self.me.rejected());
        let result = self.me.handle_message(self.now, from, self.last.clone());
        let written = rewrite_message(self.last.clone());
        match (result, written) {
            (Ok(()), Ok(written)) => {
                assert_eq!(rewrite_message(written.clone()).as_ref(), Ok(&written));
            }
            // Messages from nodes that are not neighbours are ignored.
            (Ok(()), Err(_)) => {
                assert_eq!((summary(&self.me), self.me.rejected()), (before, rejected))
            }
            (Err(_), _) => {
                assert_eq!((summary(&self.me), self.me.rejected()), (before, rejected + 1));
            }
        }
    }

    fn pass(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        loop {
            let next = self.me.poll_timeout().min(self.honest.poll_timeout());
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            for control in [&mut self.me, &mut self.honest] {
                if control.poll_timeout() <= self.now {
                    control.handle_timeout(self.now);
                }
            }
            self.talk();
            for control in [&self.me, &self.honest] {
                assert!(control.poll_timeout() > self.now, "requests the same wakeup again");
            }
        }
        self.now = end;
    }

    /// Exchanges messages until both nodes have nothing left to send. Each must understand the other,
    /// whatever strangers sent before.
    fn talk(&mut self) {
        for _ in 0..MESSAGES_MAX {
            let (mine, theirs) = (sends(&mut self.me), sends(&mut self.honest));
            if mine.is_empty() && theirs.is_empty() {
                return;
            }
            for (hop, message) in mine {
                assert!(
                    rewrite_message(message.clone()).is_ok(),
                    "sends a message that cannot be decoded"
                );
                if hop == HONEST {
                    assert_eq!(self.honest.handle_message(self.now, ME, message), Ok(()));
                }
            }
            for (hop, message) in theirs {
                assert_eq!(hop, ME);
                assert_eq!(self.me.handle_message(self.now, HONEST, message), Ok(()));
            }
        }
        panic!("they never stop sending");
    }
}

/// Drains the outputs of a control and returns the messages that it sends.
fn sends(control: &mut Control) -> Vec<(NodeId, Bytes)> {
    let mut sends = Vec::new();
    while let Some(output) = control.poll_output() {
        if let ControlOutput::Send { hop, message } = output {
            sends.push((hop, message));
        } else {
            assert!(sends.is_empty(), "{output:?} after a send");
        }
        assert!(sends.len() < MESSAGES_MAX);
    }
    sends
}

/// Summarises the registry by version numbers and counts, which every change changes.
fn summary(control: &Control) -> Vec<(NodeId, u64, usize, usize, usize, usize)> {
    let view = control.nodes();
    view.map(|view| {
        let tables = (view.publishers.len(), view.subscriptions.len());
        let more = (view.neighbours.len(), view.refusals.len());
        (view.id, view.version, tables.0, tables.1, more.0, more.1)
    })
    .collect()
}

fn hop_info(bytes_per_s: u64) -> HopInfo {
    HopInfo::new("eth".into(), Capacity::from_bytes_per_s(bytes_per_s).ok())
}

fn publisher(input: &mut Input<'_>) -> PublisherSpec {
    let tag = input.one_of(&["robot/left", "robot/right", "arm"]);
    PublisherSpec {
        tag: Tag::new(tag).unwrap(),
        kind: input.one_of(&[Kind::Data, Kind::Picture]),
        encoding: Encoding::Bytes,
        period: input.flag().then_some(Duration::from_millis(40)),
        late: Late::Drop,
        loss: None,
        size: input.flag().then_some(Size { width: 640, height: 480 }),
        bytes_max: Some(u64::from(input.u16())),
        envelope: None,
        waits: input.flag(),
        latch: false,
        unscalable: None,
        key_interval: None,
        structure: None,
        scaled: Vec::new(),
        within: None,
    }
}

fn subscription(input: &mut Input<'_>) -> SubscriptionSpec {
    let pattern = input.one_of(&["robot/*", "**", "arm"]);
    let size = Size { width: 320, height: 240 };
    let form = Form { size: input.flag().then_some(size), ..Form::FULL };
    let elastic = input.flag().then(|| {
        let sizes = vec![Size { width: 160, height: 120 }];
        Elastic { sizes, ..Elastic::none(form) }
    });
    SubscriptionSpec {
        pattern: Pattern::new(pattern).unwrap(),
        form,
        within: input.flag().then_some(Duration::from_millis(90)),
        loss: None,
        proxy: match input.one_of(&[0_u8, 1, 2, 3]) {
            0 => Proxy::Publisher,
            1 => Proxy::Subscriber,
            2 => Proxy::Auto,
            _ => Proxy::Node(input.one_of(&["node0", "node1", "nobody"]).into()),
        },
        holds: false,
        local: input.flag(),
        retransmit: paceline_proto::Retransmit::default(),
        revision: 0,
        or_stop: false,
        encrypted: false,
        level: None,
        idle: None,
        with: None,
        proves: false,
        spare: input.flag(),
        importance: input.one_of(&[0, 50, 100]),
        elastic: elastic.filter(Elastic::is_valid).map(Box::new),
    }
}
