//! Both paths, compared with an enumeration.

use super::*;
use crate::control::data::second::PathPair;
use crate::control::data::spec::HopInfo;
use crate::control::membership::graph::Tree;
use crate::control::membership::registry::Record;
use paceline_sched::Instant;
use proptest::prelude::*;

/// A hop: its nodes, and the numbers of their links.
type Hop = (u64, u64, u8, u8);

/// Returns a registry with these hops. A link with the number 0 is that between the processes of a host.
fn registry(hops: &[Hop]) -> Registry {
    let mut records: BTreeMap<u64, BTreeMap<NodeId, HopInfo>> = BTreeMap::new();
    for &(one, other, out, back) in hops {
        for (from, to, link) in [(one, other, out), (other, one, back)] {
            let hop = HopInfo { own: link == 0, ..HopInfo::new(format!("link{link}"), None) };
            records.entry(from).or_default().insert(NodeId(to), hop);
        }
    }
    let mut registry = Registry::new(NodeId(0), String::new());
    for (node, neighbours) in records {
        let neighbours = neighbours.into_iter().collect();
        let record = Record { version: 2, neighbours, ..Record::default() };
        let node = NodeId(node);
        registry.replace(Instant::ZERO, (node, node), (record, 9)).unwrap();
    }
    registry
}

/// Returns all paths without a loop.
fn all_paths(registry: &Registry, path: &[NodeId], to: NodeId, paths: &mut Vec<Vec<NodeId>>) {
    let &last = path.last().unwrap();
    if last == to {
        return paths.push(path.to_vec());
    }
    for &next in registry.record(last).iter().flat_map(|record| record.neighbours.keys()) {
        if !path.contains(&next) {
            all_paths(registry, &[path, &[next]].concat(), to, paths);
        }
    }
}

/// Returns the links of a path that no other path may have, each with its node.
fn links(registry: &Registry, path: &[NodeId]) -> BTreeSet<(NodeId, String)> {
    let hops = path.windows(2).filter(|hop| !may_share(registry, hop[0], hop[1]));
    let ends = hops.flat_map(|hop| [(hop[0], hop[1]), (hop[1], hop[0])]);
    let name =
        |node, next: NodeId| registry.record(node).unwrap().neighbours[&next].link_name.clone();
    ends.map(|(node, next)| (node, name(node, next))).collect()
}

/// Returns the relays of a path that no other path may have.
fn relays(path: &[NodeId], near: &[BTreeSet<NodeId>; 2]) -> BTreeSet<NodeId> {
    path.iter().copied().filter(|node| !near.iter().any(|near| near.contains(node))).collect()
}

/// Returns the least total number of hops of two paths, by enumeration.
fn least(registry: &Registry, Ends { from, to, apart, .. }: Ends) -> Option<usize> {
    let mut paths = Vec::new();
    all_paths(registry, &[from], to, &mut paths);
    let near = [from, to].map(|end| near(registry, end));
    let all: Vec<_> = paths
        .iter()
        .map(|path| (path.len() - 1, links(registry, path), relays(path, &near)))
        .collect();
    let pairs = all.iter().flat_map(|one| all.iter().map(move |other| (one, other)));
    let fits = |(one, other): &(&(usize, _, _), &(usize, _, _))| {
        let (_, links, relays): &(usize, BTreeSet<(NodeId, String)>, BTreeSet<NodeId>) = one;
        links.is_disjoint(&other.1) && (!apart || relays.is_disjoint(&other.2))
    };
    pairs.filter(fits).map(|(one, other)| one.0 + other.0).min()
}

fn total(paths: &[&Vec<NodeId>]) -> usize {
    paths.iter().map(|path| path.len() - 1).sum()
}

/// Asserts that two paths exist, and have no link and with `apart` no relay in common.
fn assert_valid(registry: &Registry, ends: Ends, paths: [&Vec<NodeId>; 2]) {
    let near = [ends.from, ends.to].map(|end| near(registry, end));
    for path in paths {
        assert_eq!((path.first(), path.last()), (Some(&ends.from), Some(&ends.to)));
        assert!(path.windows(2).all(|hop| registry.linked(hop[0], hop[1])), "{path:?}");
        assert_eq!(path.iter().collect::<BTreeSet<_>>().len(), path.len(), "a loop: {path:?}");
    }
    let [one, other] = paths;
    assert!(links(registry, one).is_disjoint(&links(registry, other)), "{paths:?}");
    assert!(!ends.apart || relays(one, &near).is_disjoint(&relays(other, &near)), "{paths:?}");
}

/// Compares both paths of a contract between the nodes 0 and 1 with the enumeration. Returns true if the first one is not the
/// shortest path.
fn check(hops: &[Hop]) -> bool {
    let registry = registry(hops);
    let (from, to) = (NodeId(0), NodeId(1));
    let Some(shortest) = Tree::new(&registry, from).path(to) else { return false };
    let ends = |apart| Ends { from, to, encrypted: false, apart };
    for apart in [true, false] {
        let found = shortest_pair(&registry, ends(apart));
        let expected = least(&registry, ends(apart));
        assert_eq!(found.as_ref().map(|[one, other]| total(&[one, other])), expected, "{apart}");
        if let Some([one, other]) = &found {
            assert_valid(&registry, ends(apart), [one, other]);
            assert!(one.len() <= other.len(), "the shorter one first");
        }
    }
    let best = [true, false].map(|apart| (apart, least(&registry, ends(apart))));
    let PathPair { first, second } = PathPair::new(&registry, shortest.clone(), false);
    match (second, best.into_iter().find(|(_, hops)| hops.is_some())) {
        (Some(second), Some((apart, hops))) => {
            assert_valid(&registry, ends(apart), [&first, &second]);
            assert_eq!(Some(total(&[&first, &second])), hops);
        }
        (second, best) => assert_eq!((second, best), (None, None)),
    }
    first.len() > shortest.len()
}

/// Returns a strategy for networks of up to seven nodes in which some links lead to several neighbours.
fn networks() -> impl Strategy<Value = Vec<Hop>> {
    let hop = (0..7_u64, 0..7_u64, 0..6_u8, 0..6_u8);
    let hop = hop.prop_filter("no loop", |(one, other, ..)| one != other);
    proptest::collection::vec(hop, 4..16).prop_map(|hops| {
        let own = |link: u8| if link < 5 { link.max(1) } else { 0 };
        // Both ends claim a hop within a host, or none.
        let name = |(one, other, out, back): Hop| match own(out) {
            0 => (one, other, 0, 0),
            out => (one, other, out, back.max(1)),
        };
        hops.into_iter().map(name).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn both_paths_are_those_of_an_enumeration(hops in networks()) {
        check(&hops);
    }
}

#[test]
fn the_shortest_path_yields_to_two_longer_ones_that_it_crosses() {
    // 0 - 2 - 3 - 1 is the shortest one. Each longer path has one of its ends, so nothing is left next to it.
    let hops = [(0_u8, 2), (2, 3), (3, 1), (0, 4), (4, 6), (6, 3), (2, 5), (5, 7), (7, 1)];
    let hops = hops.map(|(one, other)| (one.into(), other.into(), other + 1, one + 1));
    assert!(check(&hops), "the first path is longer");
    let paths = PathPair::new(&registry(&hops), [0, 2, 3, 1].map(NodeId).to_vec(), false);
    let mut both = [paths.first, paths.second.expect("a second path")];
    both.sort();
    assert_eq!(both, [[0, 2, 5, 7, 1], [0, 4, 6, 3, 1]].map(|path| path.map(NodeId).to_vec()));
}

#[test]
fn a_relay_before_a_hop_within_its_host_is_on_one_of_two_paths_only() {
    // 0 - 3 - 2 - 1 is the shortest path. 3 and 2 are processes of one host; 3 has another link, to 4.
    check(&[
        (6, 0, 1, 1),
        (3, 4, 1, 1),
        (2, 3, 0, 0),
        (4, 1, 1, 1),
        (0, 3, 4, 2),
        (2, 1, 1, 2),
        (5, 2, 1, 1),
        (3, 6, 1, 1),
        (5, 0, 1, 4),
    ]);
}

/// Returns a ring of two chains between the nodes 0 and 1, each of `hops` hops.
fn ring(hops: u64) -> Vec<Hop> {
    let chain = |first: u64| {
        let relays = first..first + hops - 1;
        let nodes: Vec<u64> = [0].into_iter().chain(relays).chain([1]).collect();
        nodes.windows(2).map(|hop| (hop[0], hop[1], 1, 2)).collect::<Vec<Hop>>()
    };
    // The ends have a link for each chain.
    let [one, other] = [chain(2), chain(2 + hops)];
    let other = other.into_iter().map(|(from, to, out, back)| (from, to, out + 2, back + 2));
    one.into_iter().chain(other).collect()
}

#[test]
fn no_path_of_a_pair_has_more_hops_than_the_limit() {
    let ends = Ends { from: NodeId(0), to: NodeId(1), encrypted: false, apart: true };
    let longest = HOPS_MAX as u64;
    let both = shortest_pair(&registry(&ring(longest)), ends).expect("both chains");
    assert!(both.iter().all(|path| path.len() == HOPS_MAX + 1));
    assert_eq!(shortest_pair(&registry(&ring(longest + 1)), ends), None);
}

/// Returns the hops as those between hosts: within a host, both paths may pass nodes and hops.
fn apart(hops: Vec<Hop>) -> Vec<Hop> {
    hops.into_iter().map(|(one, other, out, back)| (one, other, out.max(1), back.max(1))).collect()
}

/// Returns `registry` with changed hops.
fn with_hops(registry: &Registry, change: impl Fn(NodeId, NodeId, &mut HopInfo)) -> Registry {
    let mut changed = Registry::new(NodeId(0), String::new());
    for (node, record) in registry.all() {
        let neighbours = record.neighbours.iter().map(|(&to, hop)| {
            let mut hop = hop.clone();
            change(node, to, &mut hop);
            (to, hop)
        });
        let record = Record { version: 3, neighbours: neighbours.collect(), ..record.clone() };
        changed.replace(Instant::ZERO, (node, node), (record, 9)).unwrap();
    }
    changed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn encrypted_paths_are_those_of_a_network_without_other_hops(
        hops in networks(),
        plain in proptest::collection::vec(any::<bool>(), 16),
    ) {
        let hops = apart(hops);
        let is_plain = |one: NodeId, other: NodeId| {
            let same = |hop: &Hop| [(hop.0, hop.1), (hop.1, hop.0)].contains(&(one.0, other.0));
            hops.iter().zip(&plain).any(|(hop, plain)| same(hop) && *plain)
        };
        let all = registry(&hops);
        let marked = with_hops(&all, |from, to, hop| hop.encrypted = !is_plain(from, to));
        let kept: Vec<Hop> =
            hops.iter().filter(|hop| !is_plain(NodeId(hop.0), NodeId(hop.1))).copied().collect();
        let ends = |encrypted, apart| Ends { from: NodeId(0), to: NodeId(1), encrypted, apart };
        for apart in [true, false] {
            let found = shortest_pair(&marked, ends(true, apart));
            let expected = shortest_pair(&registry(&kept), ends(false, apart));
            let length = |pair: &Option<[Vec<NodeId>; 2]>| {
                pair.as_ref().map(|[one, other]| total(&[one, other]))
            };
            prop_assert_eq!(length(&found), length(&expected));
        }
    }

    #[test]
    fn paths_lead_through_no_leaf(hops in networks(), leaves in 0..128_u64) {
        let hops = apart(hops);
        let is_leaf = |node: u64| leaves >> node & 1 == 1;
        let marked = with_hops(&registry(&hops), |_, to, hop| hop.leaf = is_leaf(to.0));
        // Without processes of one host, a leaf is only an end of a path.
        let is_inner = |node: u64| node > 1 && is_leaf(node);
        let kept: Vec<Hop> =
            hops.iter().filter(|hop| !is_inner(hop.0) && !is_inner(hop.1)).copied().collect();
        for apart in [true, false] {
            let ends = Ends { from: NodeId(0), to: NodeId(1), encrypted: false, apart };
            let found = shortest_pair(&marked, ends);
            let expected = least(&registry(&kept), ends);
            prop_assert_eq!(found.map(|[one, other]| total(&[&one, &other])), expected);
        }
    }
}
