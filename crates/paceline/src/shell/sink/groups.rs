//! The groups of this process by name.

use crate::error::SubscribeError;
use crate::shell::lock;
use paceline_node::deliver::SyncGroup;
use paceline_sched::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

static GROUPS: Mutex<BTreeMap<String, Weak<SyncGroup>>> = Mutex::new(BTreeMap::new());

/// Returns the group of this name.
///
/// # Errors
/// [`SubscribeError::SyncDelay`] if its members in this process have another delay.
pub(crate) fn join(name: &str, delay: Duration) -> Result<Arc<SyncGroup>, SubscribeError> {
    let mut groups = lock(&GROUPS);
    groups.retain(|_, group| group.strong_count() > 0);
    if let Some(group) = groups.get(name).and_then(Weak::upgrade) {
        return if group.delay() == delay {
            Ok(group)
        } else {
            let (group, present) = (name.to_owned(), group.delay().into());
            Err(SubscribeError::SyncDelay { group, delay: delay.into(), present })
        };
    }
    let group = Arc::new(SyncGroup::new(name, delay));
    groups.insert(name.to_owned(), Arc::downgrade(&group));
    Ok(group)
}
