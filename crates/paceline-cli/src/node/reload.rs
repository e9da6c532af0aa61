//! Reloading the configuration on SIGHUP, and the changes that do not need a restart.

use super::plain;
use super::{Parts, sources};
use crate::args::LinkSpec;
use crate::config::Settings;
use paceline::class::LinkClass;
use paceline::{Capacity, LinkCapacity, Node};
use paceline_tool::log;

/// One difference between two configurations.
#[derive(Clone, Debug, PartialEq)]
enum Change {
    /// The log filter changed.
    Log,
    /// The capacity changed of the link with this index and name.
    Capacity(usize, String, Capacity),
    /// The classes changed of the link with this index and name.
    Classes(usize, String, Vec<LinkClass>),
    /// The pull buffers changed.
    Buffers,
    /// The sources changed.
    Sources,
    /// The rules for plain Zenoh programs changed.
    Rules,
    /// This key changed; it takes effect at the next start.
    Restart(String),
}

/// Applies all changes that need no restart. If the new configuration is invalid, logs the errors and changes
/// nothing.
pub(super) fn reload(
    read: anyhow::Result<Settings>,
    settings: &mut Settings,
    parts: &mut Parts,
    node: &Node,
) {
    let new = match read.and_then(|new| {
        new.check()?;
        sources::check(&new.sources).map(|()| new)
    }) {
        Ok(new) => new,
        Err(error) => {
            for line in format!("{error:#}").lines() {
                tracing::error!("{line}");
            }
            tracing::error!("the configuration is unchanged");
            return;
        }
    };
    let file = new.file.as_ref().map(|file| file.display().to_string());
    let file = file.unwrap_or_else(|| "no configuration file".to_owned());
    let changes = changes(settings, &new);
    for change in &changes {
        apply(change, settings, parts, &new, node);
    }
    // Those that have ended start again.
    parts.sources.set(node, &settings.sources);
    tracing::info!("reloaded {file}: {} keys changed", changes.len());
}

fn apply(change: &Change, settings: &mut Settings, parts: &mut Parts, new: &Settings, node: &Node) {
    match change {
        Change::Log => {
            settings.log.clone_from(&new.log);
            log::configure(new.log.as_deref());
            if log::is_overridden() {
                tracing::info!("log: the flag or the environment variable overrides the file");
            }
        }
        Change::Capacity(place, name, capacity) => match node.set_capacity(name, *capacity) {
            Ok(()) => {
                if let Some(link) = settings.links.get_mut(*place) {
                    link.capacity = Some(LinkCapacity::Fixed(*capacity));
                }
                tracing::info!("link '{name}': the capacity is now {capacity}");
            }
            Err(error) => tracing::error!("capacity: {error}"),
        },
        Change::Classes(place, name, classes) => match node.set_classes(name, classes.clone()) {
            Ok(()) => {
                if let Some(link) = settings.links.get_mut(*place) {
                    link.classes.clone_from(classes);
                }
                tracing::info!("link '{name}': the number of classes is now {}", classes.len());
            }
            Err(error) => tracing::error!("classes: {error}"),
        },
        Change::Buffers => {
            settings.buffers.clone_from(&new.buffers);
            match parts.buffers.set(node, &new.buffers) {
                Ok(()) => tracing::info!("pull buffers: now {}", new.buffers.len()),
                Err(error) => tracing::error!("{error:#}"),
            }
        }
        Change::Sources => {
            settings.sources.clone_from(&new.sources);
            tracing::info!("sources: now {}", new.sources.len());
        }
        Change::Rules => {
            settings.rules.clone_from(&new.rules);
            let (imports, exports) = (new.rules.imports.len(), new.rules.exports.len());
            let queries = new.rules.queries.len();
            match parts.plain.set(node, settings) {
                Ok(()) => {
                    tracing::info!(
                        "plain: now {imports} imports, {exports} exports, {queries} queries"
                    );
                }
                Err(error) => tracing::error!("{error:#}"),
            }
        }
        Change::Restart(key) => tracing::warn!("{key} changed: restart the node to apply it"),
    }
}

/// Returns the differences between `old` and `new`, in the order in which to apply them.
fn changes(old: &Settings, new: &Settings) -> Vec<Change> {
    let mut changes = Vec::new();
    for (change, differs) in [
        (Change::Log, old.log != new.log),
        (Change::Buffers, old.buffers != new.buffers),
        (Change::Sources, old.sources != new.sources),
        (Change::Rules, old.rules != new.rules),
    ] {
        changes.extend(differs.then_some(change));
    }
    for (key, differs) in [
        ("name", old.name != new.name),
        ("runtime_dir", old.runtime_dir != new.runtime_dir),
        ("isolated", old.isolated != new.isolated),
        ("host_buffer", old.host_buffer != new.host_buffer),
        ("neighbour_memory", old.neighbour_memory != new.neighbour_memory),
        ("processor_percent", old.processor_percent != new.processor_percent),
        ("http", old.http != new.http || old.http_files != new.http_files),
        ("foxglove", old.foxglove != new.foxglove),
        ("rtsp", old.rtsp != new.rtsp || old.rtsp_login != new.rtsp_login),
        ("webrtc", old.webrtc != new.webrtc),
        ("policy", old.policy != new.policy),
        ("token", old.token != new.token),
        ("plain", is_moved(old, new)),
    ] {
        if differs {
            changes.push(Change::Restart(key.to_owned()));
        }
    }
    if old.links.len() != new.links.len() {
        changes.push(Change::Restart("the number of links".to_owned()));
        return changes;
    }
    for (place, (was, is)) in old.links.iter().zip(&new.links).enumerate() {
        let name = was.name(place + 1);
        for (key, differs) in [
            ("name", name != is.name(place + 1)),
            ("listen", was.listen != is.listen),
            ("connect", was.connect != is.connect),
            ("policy", was.policy != is.policy),
            ("tls files", was.tls != is.tls),
            ("proxy", was.proxy != is.proxy),
            ("multicast", was.multicast != is.multicast),
            ("ordered", was.ordered != is.ordered),
            ("insecure", was.insecure != is.insecure),
            ("buffer", was.buffer != is.buffer),
            ("medium", was.medium != is.medium),
        ] {
            if differs {
                changes.push(Change::Restart(format!("{key} of link '{name}'")));
            }
        }
        let first = |link: &LinkSpec| link.capacity.map(|capacity| capacity.first());
        let classes = was.classes != is.classes;
        let classes = classes.then(|| Change::Classes(place, name.clone(), is.classes.clone()));
        // Guarantees must fit at every step: capacity grows before classes change, and shrinks afterwards.
        let (first, last) = if first(is) > first(was) { (None, classes) } else { (classes, None) };
        changes.extend(first);
        match (was.capacity, is.capacity) {
            (was, is) if was == is => {}
            (Some(LinkCapacity::Fixed(_)), Some(LinkCapacity::Fixed(capacity))) => changes.push(Change::Capacity(place, name, capacity)),
            _ => changes.push(Change::Restart(format!(
                "capacity of link '{name}', which can be neither added, removed nor measured at run time,"
            ))),
        }
        changes.extend(last);
    }
    changes
}

/// Returns true if the endpoints for plain programs changed while the bridge was open.
fn is_moved(old: &Settings, new: &Settings) -> bool {
    match (plain::config(old), plain::config(new)) {
        (Some(was), Some(is)) => was != is,
        // A bridge without rules opens and closes with the node only.
        (None, Some(_)) => new.rules.is_empty(),
        (Some(_), None) => old.rules.is_empty(),
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(links: &[&str]) -> Settings {
        let links = links.iter().map(|link| link.parse().unwrap()).collect();
        Settings { links, ..Settings::default() }
    }

    fn restarts(old: &Settings, new: &Settings) -> Vec<String> {
        let changes = changes(old, new);
        let key = |change| match change {
            Change::Restart(key) => key,
            Change::Log
            | Change::Buffers
            | Change::Sources
            | Change::Rules
            | Change::Capacity(..)
            | Change::Classes(..) => {
                panic!("{change:?}")
            }
        };
        changes.into_iter().map(key).collect()
    }

    #[test]
    fn capacities_buffers_and_the_log_change_at_once() {
        let old = settings(&["name=radio,connect=tcp/h:1,capacity=2mbit"]);
        let mut new = settings(&["name=radio,connect=tcp/h:1,capacity=1mbit"]);
        new.log = Some("info".to_owned());
        new.buffers = vec!["robot/**=100".parse().unwrap()];
        let capacity = Capacity::from_bits_per_s(1_000_000).unwrap();
        let wanted =
            [Change::Log, Change::Buffers, Change::Capacity(0, "radio".to_owned(), capacity)];
        assert_eq!(changes(&old, &new), wanted);
        assert_eq!(changes(&old, &old), []);
    }

    #[test]
    fn classes_change_at_once_and_fit_at_every_step() {
        let with = |capacity: &str, name: &str| {
            let mut settings =
                settings(&[&format!("name=radio,connect=tcp/h:1,capacity={capacity}")]);
            let class = LinkClass { name: name.to_owned(), ..LinkClass::default() };
            settings.links[0].classes = vec![class];
            settings
        };
        let order = |old: &Settings, new: &Settings| {
            let changes = changes(old, new);
            changes
                .iter()
                .map(|change| matches!(change, Change::Classes(0, ..)))
                .collect::<Vec<_>>()
        };
        assert_eq!(order(&with("2mbit", "a"), &with("1mbit", "b")), [true, false]);
        assert_eq!(order(&with("1mbit", "a"), &with("2mbit", "b")), [false, true]);
        assert_eq!(order(&with("1mbit", "a"), &with("1mbit", "b")), [true]);
    }

    #[test]
    fn changes_that_need_a_restart_are_named() {
        let old = settings(&["name=radio,connect=tcp/h:1,capacity=2mbit"]);
        let new = settings(&["name=thin,listen=tcp/[::1]:1,policy=dwcs,insecure"]);
        let keys = restarts(&old, &new);
        for key in ["name", "listen", "connect", "policy", "insecure", "capacity"] {
            let text = format!("{key} of link 'radio'");
            assert!(keys.iter().any(|key| key.starts_with(&text)), "{key}: {keys:?}");
        }
        assert_eq!(restarts(&old, &settings(&[])), ["the number of links"]);
        let other = Settings {
            name: Some("x".to_owned()),
            runtime_dir: Some("/run/x".into()),
            isolated: true,
            ..settings(&[])
        };
        assert_eq!(restarts(&settings(&[]), &other), ["name", "runtime_dir", "isolated"]);
    }
}
