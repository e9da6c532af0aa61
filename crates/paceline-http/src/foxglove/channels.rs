//! The channels of a client: one per tag and media type, with the schema that Foxglove displays.

use super::protocol::AdvertisedChannel;
use paceline::status::SourceView;
use paceline_record::Body;
use std::collections::{BTreeMap, BTreeSet};

/// The most channels of a client.
pub(super) const CHANNELS_MAX: usize = 1_024;

/// A tag in a media type.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Topic {
    pub(super) tag: String,
    pub(super) encoding: String,
}

impl Topic {
    /// Returns the format of its messages.
    pub(super) fn body(&self) -> Body {
        Body::of_type(&self.encoding)
    }
}

/// The channels that a client knows.
#[derive(Debug, Default)]
pub(super) struct Channels {
    ids: BTreeMap<Topic, u32>,
    next: u32,
    /// The number of topics without a channel.
    left_out: usize,
}

/// The changes for a client.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ChannelChanges {
    pub(super) new: Vec<AdvertisedChannel>,
    pub(super) gone: Vec<u32>,
}

impl Channels {
    /// Takes the present publishers, and returns the changes. An id is used once.
    pub(super) fn set<'a>(
        &mut self,
        sources: impl IntoIterator<Item = &'a SourceView>,
    ) -> ChannelChanges {
        let topic = |source: &SourceView| Topic {
            tag: source.tag.to_string(),
            encoding: source.encoding.to_string(),
        };
        self.set_topics(sources.into_iter().map(topic).collect())
    }

    fn set_topics(&mut self, topics: BTreeSet<Topic>) -> ChannelChanges {
        let mut changes = ChannelChanges::default();
        self.ids.retain(|known, id| {
            let is_there = topics.contains(known);
            if !is_there {
                changes.gone.push(*id);
            }
            is_there
        });
        self.left_out = topics.len().saturating_sub(CHANNELS_MAX);
        let room = CHANNELS_MAX - self.ids.len();
        let new: Vec<Topic> =
            topics.into_iter().filter(|topic| !self.ids.contains_key(topic)).take(room).collect();
        for topic in new {
            let id = self.next;
            self.next += 1;
            let body = topic.body();
            // A schema of JSON follows from a sample, and Foxglove reads JSON without one.
            let schema = body.describe(&topic.tag, &topic.encoding, &[]);
            let encoding = body.message_encoding(&topic.encoding);
            changes.new.push(AdvertisedChannel::new(id, &topic.tag, encoding, schema));
            self.ids.insert(topic, id);
        }
        changes
    }

    /// Returns the topic of a channel.
    pub(super) fn topic(&self, channel: u32) -> Option<&Topic> {
        self.ids.iter().find(|(_, id)| **id == channel).map(|(topic, _)| topic)
    }

    /// Returns the tags in alphabetical order.
    pub(super) fn tags(&self) -> Vec<String> {
        let tags: BTreeSet<&String> = self.ids.keys().map(|topic| &topic.tag).collect();
        tags.into_iter().cloned().collect()
    }

    /// Returns the number of topics without a channel, because there are too many.
    pub(super) const fn left_out(&self) -> usize {
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(all: &[(&str, &str)]) -> BTreeSet<Topic> {
        let topic = |(tag, encoding): &(&str, &str)| Topic {
            tag: (*tag).to_owned(),
            encoding: (*encoding).to_owned(),
        };
        all.iter().map(topic).collect()
    }

    #[test]
    fn a_channel_begins_and_ends_with_its_publisher_and_has_a_new_id_afterwards() {
        let mut channels = Channels::default();
        let camera = topics(&[("robot/camera", "image/jpeg"), ("robot/pose", "application/json")]);
        let changes = channels.set_topics(camera.clone());
        assert_eq!(changes.new.iter().map(|it| it.id).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(channels.topic(0).unwrap().tag, "robot/camera");
        assert_eq!(channels.set_topics(camera.clone()), ChannelChanges::default());
        let changes = channels.set_topics(topics(&[("robot/pose", "application/json")]));
        assert_eq!((changes.new.len(), changes.gone), (0, vec![0]));
        assert!(channels.topic(0).is_none());
        let changes = channels.set_topics(camera);
        assert_eq!(changes.new.iter().map(|it| it.id).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_network_with_too_many_topics_shows_the_first_ones_and_their_number() {
        let many: Vec<String> = (0..CHANNELS_MAX + 3).map(|n| format!("a/{n:05}")).collect();
        let many: Vec<_> = many.iter().map(|tag| (tag.as_str(), "text/plain")).collect();
        let mut channels = Channels::default();
        assert_eq!(channels.set_topics(topics(&many)).new.len(), CHANNELS_MAX);
        assert_eq!(channels.left_out(), 3);
        // One that ends makes room.
        let changes = channels.set_topics(topics(&many[1..]));
        assert_eq!((changes.new.len(), changes.gone, channels.left_out()), (1, vec![0], 2));
    }
}
