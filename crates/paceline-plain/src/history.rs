//! The history of Zenoh's AdvancedPublishers, with which ROS 2 serves late joiners of `transient_local` topics.
//!
//! Such a publisher of `KEY` answers queries for `KEY/@adv/pub/ZID/EID/_` with its last samples, and declares a liveliness
//! token of the same key. A subscriber queries `KEY/@adv/**` when it starts, and the key of each token when that appears.

use crate::key::KeyPattern;
use zenoh::key_expr::{OwnedKeyExpr, keyexpr};

/// The begin of the part of a history's key that follows its topic. Parts with `@` match no wildcard.
const PREFIX: &str = "/@adv/";

/// Returns the intersection of `key` and `of` if one of them includes the other. The history of a key counts as the key.
pub(crate) fn narrowed(of: &KeyPattern, key: &keyexpr) -> Option<OwnedKeyExpr> {
    of.narrowed(key).or_else(|| {
        let (topic, rest) = key.as_str().split_once(PREFIX)?;
        let topic = of.narrowed(<&keyexpr>::try_from(topic).ok()?)?;
        OwnedKeyExpr::try_from(format!("{topic}{PREFIX}{rest}")).ok()
    })
}

/// Returns true if a key matches both patterns, or the history of a key of one matches the other.
pub(crate) fn overlap(one: &KeyPattern, other: &KeyPattern) -> bool {
    let topic = |of: &KeyPattern| {
        let (topic, _) = of.as_str().split_once(PREFIX)?;
        OwnedKeyExpr::try_from(topic).ok()
    };
    let matches = |one: &KeyPattern, other: &KeyPattern| {
        topic(one).is_some_and(|topic| topic.intersects(other.as_keyexpr()))
    };
    one.intersects(other) || matches(one, other) || matches(other, one)
}

/// Returns the key expression of the histories of all keys of `of`, and of their tokens.
pub(crate) fn of_all(of: &KeyPattern) -> String {
    format!("{}{PREFIX}pub/**", of.as_str())
}

/// Returns true if the key is that of a history.
pub(crate) fn is_history(key: &keyexpr) -> bool {
    key.as_str().contains(PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_of_a_key_belongs_to_the_rule_of_the_key() {
        let narrowed = |of: &str, key: &str| {
            let key = OwnedKeyExpr::try_from(key).unwrap();
            narrowed(&KeyPattern::new(of).unwrap(), &key).map(|key| key.to_string())
        };
        let cache = "0/map/T/H/@adv/pub/1f/2/_";
        for same in ["0/map/T/H", cache, "0/map/T/H/@adv/**", "0/map/**/@adv/**"] {
            assert_eq!(narrowed("0/**", same).as_deref(), Some(same));
        }
        assert_eq!(narrowed("0/map/**", "0/**/@adv/**").as_deref(), Some("0/map/**/@adv/**"));
        assert_eq!(narrowed("0/map/**", "1/map/@adv/**"), None);
        assert_eq!(narrowed("**/@adv/pub/*/*/_", cache).as_deref(), Some(cache));
        assert_eq!(of_all(&KeyPattern::new("0/**").unwrap()), "0/**/@adv/pub/**");
        assert!(OwnedKeyExpr::try_from(of_all(&KeyPattern::new("a/*/b").unwrap())).is_ok());
    }
}
