//! The samples of one topic for one viewer.

use super::channels::Topic;
use super::protocol::{self, Level};
use crate::request::ViewerRequest;
use paceline::status::SubscriptionId;
use paceline::{Node, Sample, Subscriber, SubscriberEvent};
use paceline_record::Body;
use paceline_tool::show;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

/// The samples that wait for a viewer. Beyond these, those of a subscription are dropped and counted at it: a viewer that
/// reads slowly gets recent samples, not old ones.
const QUEUE: usize = 8;
/// The time between two looks at the counters.
const TICK: Duration = Duration::from_secs(1);

/// A subscription for a viewer.
pub(super) struct Feed {
    subscriber: Subscriber,
    /// The viewer's number for it.
    id: u32,
    topic: Topic,
    body: Body,
    out: mpsc::Sender<Message>,
    /// The last status, to send it once.
    said: String,
    /// Samples that do not have the format of the topic.
    unfit: u64,
}

/// Returns the ids of the statuses of a topic: the answer of its path, and its losses.
pub(super) fn statuses_of(topic: &Topic) -> [String; 2] {
    ["answer", "losses"].map(|what| format!("{} {what}", topic.tag))
}

/// The viewer has gone.
struct Gone;

impl Feed {
    /// Subscribes to a topic. May block for a moment.
    ///
    /// # Errors
    /// Returns the reason if the request is invalid.
    pub(super) fn open(
        node: &Node,
        (id, topic): (u32, Topic),
        request: &ViewerRequest,
        out: mpsc::Sender<Message>,
    ) -> Result<Self, String> {
        let builder = request.apply(node.subscriber(&topic.tag)).queue(QUEUE);
        let subscriber = builder.declare().map_err(|error| error.to_string())?;
        let body = topic.body();
        Ok(Self { subscriber, id, topic, body, out, said: String::new(), unfit: 0 })
    }

    /// Returns the id of the subscription.
    pub(super) const fn subscription(&self) -> SubscriptionId {
        self.subscriber.id()
    }

    /// Sends samples and answers until the viewer or the node ends.
    pub(super) async fn run(mut self) {
        let mut look = tokio::time::interval(TICK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let arrival = self.subscriber.arrival();
            let (Ok(()), false) = (self.forward().await, self.subscriber.is_closed()) else {
                return;
            };
            tokio::select! {
                () = arrival => {}
                _ = look.tick() => if self.report_losses().await.is_err() { return },
            }
        }
    }

    async fn forward(&mut self) -> Result<(), Gone> {
        while let Some(event) = self.subscriber.try_event() {
            if let Some((level, text)) = answer_in_words(&event) {
                self.report(level, &text).await?;
            }
        }
        while let Some(sample) = self.subscriber.try_recv() {
            match self.message(&sample) {
                Some(message) => self.send(message).await?,
                None => self.unfit += 1,
            }
        }
        Ok(())
    }

    /// Returns the message of a sample; `None` if its format is not the one of the channel.
    fn message(&self, sample: &Sample) -> Option<Message> {
        let encoding = sample.encoding.as_str();
        let body = Body::of(encoding, &sample.payload);
        if !body.has_schema_of(&self.body)
            || body.message_encoding(encoding) != self.body.message_encoding(&self.topic.encoding)
        {
            return None;
        }
        let nanos = sample.captured.nanos;
        let mut out = protocol::message_data(self.id, nanos);
        out.reserve(sample.payload.len() + 128);
        body.write(&self.topic.tag, nanos, &sample.payload, &mut out);
        Some(Message::binary(out))
    }

    /// Reports the losses so far, while they happen.
    async fn report_losses(&mut self) -> Result<(), Gone> {
        let mut parts = Vec::new();
        let (missing, drops) = (self.subscriber.missing(), self.subscriber.drops());
        if missing > 0 {
            parts.push(format!("{missing} lost on the way"));
        }
        if drops.total() > 0 {
            parts.push(format!("dropped: {}", show::drops(&drops)));
        }
        if self.unfit > 0 {
            parts.push(format!("{} that are not {}", self.unfit, self.topic.encoding));
        }
        if parts.is_empty() {
            return Ok(());
        }
        let text = format!("samples: {}", parts.join(", "));
        self.report(Level::Warning, &text).await
    }

    async fn report(&mut self, level: Level, text: &str) -> Result<(), Gone> {
        if self.said == text {
            return Ok(());
        }
        text.clone_into(&mut self.said);
        let [answer, losses] = statuses_of(&self.topic);
        let id = if level == Level::Warning { losses } else { answer };
        let text = format!("{}: {text}", self.topic.tag);
        self.send(Message::text(protocol::status(level, &text, Some(&id)))).await
    }

    async fn send(&self, message: Message) -> Result<(), Gone> {
        self.out.send(message).await.map_err(|_| Gone)
    }
}

/// Describes the answer of a path; `None` for other events.
fn answer_in_words(event: &SubscriberEvent) -> Option<(Level, String)> {
    match event {
        SubscriberEvent::Granted(grant) => Some((Level::Info, format!("granted: {grant}"))),
        SubscriberEvent::Refused(_, refusal) => Some((Level::Error, format!("refused: {refusal}"))),
        SubscriberEvent::ChangeRefused { refusals, .. } => {
            let all: Vec<String> = refusals.iter().map(ToString::to_string).collect();
            Some((
                Level::Error,
                format!("refused: {}; the earlier request is in force", all.join("; ")),
            ))
        }
        SubscriberEvent::Adapted { form, adaptation, .. } => {
            Some((Level::Info, format!("changed to {form}: {adaptation}")))
        }
        SubscriberEvent::Warned(_, warning) => Some((Level::Warning, warning.to_string())),
        SubscriberEvent::BestEffort(_, why) => {
            Some((Level::Info, format!("best effort instead of a contract: {why}")))
        }
        SubscriberEvent::Publishers(_)
        | SubscriberEvent::NoSpare(_)
        | SubscriberEvent::Withdrawn(_)
        | SubscriberEvent::Excess { .. }
        | SubscriberEvent::Changed { .. }
        | SubscriberEvent::Silent(_)
        | SubscriberEvent::Resumed(_)
        | _ => None,
    }
}
