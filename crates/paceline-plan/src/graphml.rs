//! Topologies in GraphML (Brandes, Eiglsperger, Herman, Himsolt, Marshall: GraphML progress report,
//! 2001): nodes with `cpu`, edges with `capacity` and `delay`.

use crate::error::PlanError;
use crate::problem::{PlanLink, PlanNode};
use paceline_sched::{Capacity, Duration, units};
use roxmltree::{Document, Node};
use std::collections::{BTreeMap, BTreeSet};

/// The data of edges and nodes that are read, with the unit in the name or in the value.
const NAMES: &[&str] = &["capacity", "capacity_bits_per_s", "delay", "delay_ms", "cpu"];

/// The nodes and links of a network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// The nodes.
    pub nodes: Vec<PlanNode>,
    /// The links; an undirected edge is two.
    pub links: Vec<PlanLink>,
}

/// A document whose keys are known.
struct Reader<'a, 'i> {
    document: &'a Document<'i>,
    /// The name of each key.
    names: BTreeMap<&'a str, &'a str>,
    /// The default value of each name.
    defaults: BTreeMap<&'a str, &'a str>,
}

/// Reads a topology.
///
/// Each edge needs a capacity (`capacity` with a unit such as `10mbit`, or `capacity_bits_per_s`) and
/// a delay (`delay` with a unit such as `5ms`, or `delay_ms`), of its own or as the default of the
/// key. A node may have `cpu`, in processors. Other data is ignored.
///
/// # Errors
/// [`PlanError::GraphMl`] with the line for invalid XML, unknown nodes, loops, parallel edges, missing
/// or invalid weights, hyperedges and nested graphs.
pub fn read(text: &str) -> Result<Topology, PlanError> {
    let document = Document::parse(text)
        .map_err(|error| PlanError::GraphMl(format!("invalid XML: {error}")))?;
    let mut reader =
        Reader { document: &document, names: BTreeMap::new(), defaults: BTreeMap::new() };
    reader.keys();
    let graph = children(document.root_element(), "graph").next();
    let graph = graph.ok_or_else(|| {
        PlanError::GraphMl("the document has no <graph>: export it as GraphML".to_owned())
    })?;
    reader.graph(graph)
}

fn children<'a, 'i>(of: Node<'a, 'i>, name: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    of.children().filter(move |child| child.is_element() && child.tag_name().name() == name)
}

impl<'a, 'i> Reader<'a, 'i> {
    fn wrong<T>(&self, node: Node<'a, 'i>, text: &str) -> Result<T, PlanError> {
        let line = self.document.text_pos_at(node.range().start).row;
        Err(PlanError::GraphMl(format!("line {line}: {text}")))
    }

    fn keys(&mut self) {
        for key in children(self.document.root_element(), "key") {
            let name = key.attribute("attr.name").and_then(|name| {
                NAMES.iter().find(|known| known.eq_ignore_ascii_case(name)).copied()
            });
            if let (Some(id), Some(name)) = (key.attribute("id"), name) {
                self.names.insert(id, name);
                if let Some(value) = children(key, "default").next().and_then(|it| it.text()) {
                    self.defaults.insert(name, value.trim());
                }
            }
        }
    }

    fn data(&self, of: Node<'a, 'i>) -> BTreeMap<&'a str, &'a str> {
        let mut found = self.defaults.clone();
        for data in children(of, "data") {
            let name = data.attribute("key").and_then(|key| self.names.get(key));
            if let (Some(name), Some(value)) = (name, data.text()) {
                found.insert(name, value.trim());
            }
        }
        found
    }

    fn graph(&self, graph: Node<'a, 'i>) -> Result<Topology, PlanError> {
        let mut topology = Topology::default();
        let mut ids = BTreeMap::new();
        for node in children(graph, "node") {
            let Some(id) = node.attribute("id") else {
                return self.wrong(node, "a node has no id: give it a name");
            };
            if ids.insert(id, topology.nodes.len()).is_some() {
                return self.wrong(node, &format!("node {id} is given twice: ids must be unique"));
            }
            if let Some(inner) = children(node, "graph").next() {
                return self.wrong(inner, &format!("node {id} contains a graph: flatten it"));
            }
            topology.nodes.push(PlanNode { id: id.to_owned(), cpu: self.cpu(node)? });
        }
        if let Some(edge) = children(graph, "hyperedge").next() {
            return self.wrong(edge, "a hyperedge is no link: replace it by edges");
        }
        let is_directed = graph.attribute("edgedefault") == Some("directed");
        let mut pairs = BTreeSet::new();
        for edge in children(graph, "edge") {
            let link = self.edge(edge, &ids)?;
            let directed =
                edge.attribute("directed").map_or(is_directed, |directed| directed == "true");
            let back = (!directed).then(|| link.back());
            for link in [Some(link), back].into_iter().flatten() {
                if !pairs.insert((link.from, link.to)) {
                    let (from, to) = (edge.attribute("source"), edge.attribute("target"));
                    let (from, to) = (from.unwrap_or_default(), to.unwrap_or_default());
                    return self.wrong(edge, &format!(
                        "the edge {from} → {to} is parallel to another one: keep one, with the sum \
                         of the capacities"
                    ));
                }
                topology.links.push(link);
            }
        }
        Ok(topology)
    }

    fn cpu(&self, node: Node<'a, 'i>) -> Result<Option<f64>, PlanError> {
        let Some(text) = self.data(node).get("cpu").copied() else { return Ok(None) };
        match text.parse() {
            Ok(cpu) => Ok(Some(cpu)),
            Err(_) => self.wrong(
                node,
                &format!("cpu is \"{text}\": must be a number of processors, such as 0.5"),
            ),
        }
    }

    fn edge(&self, edge: Node<'a, 'i>, ids: &BTreeMap<&str, usize>) -> Result<PlanLink, PlanError> {
        let mut ends = [0; 2];
        for (end, name) in ends.iter_mut().zip(["source", "target"]) {
            let id = edge.attribute(name).unwrap_or_default();
            match ids.get(id) {
                Some(node) => *end = *node,
                None => {
                    return self.wrong(edge, &format!(
                        "the {name} \"{id}\" of an edge is no node: add the node, or remove the edge"
                    ));
                }
            }
        }
        let [from, to] = ends;
        let name = |end| edge.attribute(end).unwrap_or_default();
        let label = format!("the edge {} → {}", name("source"), name("target"));
        if from == to {
            return self.wrong(edge, &format!("{label} is a loop: remove it"));
        }
        let data = self.data(edge);
        let capacity = match (data.get("capacity"), data.get("capacity_bits_per_s")) {
            (Some(text), _) => units::rate(text).map_err(|error| error.to_string()),
            (None, Some(text)) => whole(text),
            (None, None) => {
                return self.wrong(edge, &format!(
                    "{label} has no weight capacity: add <data> such as 10mbit, or a <default> to \
                     the key"
                ));
            }
        };
        let delay = match (data.get("delay"), data.get("delay_ms")) {
            (Some(text), _) => units::duration(text).map_err(|error| error.to_string()),
            (None, Some(text)) => millis(text),
            (None, None) => {
                return self.wrong(edge, &format!(
                    "{label} has no weight delay: add <data> such as 5ms, or a <default> to the key"
                ));
            }
        };
        let capacity = capacity.and_then(|bits| {
            Capacity::from_bits_per_s(bits).map_err(|_| "must be at least 8 bit".to_owned())
        });
        match (capacity, delay) {
            (Ok(capacity), Ok(delay)) => {
                Ok(PlanLink { capacity: Some(capacity), delay, ..PlanLink::new(from, to) })
            }
            (Err(error), _) => self.wrong(edge, &format!("{label}: capacity {error}")),
            (Ok(_), Err(error)) => self.wrong(edge, &format!("{label}: delay {error}")),
        }
    }
}

fn whole(text: &str) -> Result<u64, String> {
    let parsed = text.parse().or_else(|_| text.strip_suffix(".0").unwrap_or(text).parse());
    parsed.map_err(|_| format!("\"{text}\" must be a whole number of bits per second"))
}

fn millis(text: &str) -> Result<Duration, String> {
    units::duration(&format!("{text}ms"))
        .map_err(|_| format!("\"{text}\" must be a number of milliseconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n\
        <key id=\"c\" for=\"edge\" attr.name=\"capacity\" attr.type=\"string\"/>\n\
        <key id=\"d\" for=\"edge\" attr.name=\"delay_ms\" attr.type=\"double\"><default>2.5</default></key>\n\
        <key id=\"p\" for=\"node\" attr.name=\"cpu\" attr.type=\"double\"/>\n";
    const NODES: &str = "<node id=\"a\"><data key=\"p\">0.5</data></node><node id=\"b\"/>";

    fn read_graph(edges: &str) -> Result<Topology, String> {
        let text =
            format!("{HEAD}<graph edgedefault=\"undirected\">{NODES}\n{edges}</graph></graphml>");
        read(&text).map_err(|error| error.to_string())
    }

    #[test]
    fn edges_have_weights_of_their_own_or_of_the_key() {
        let topology = read_graph(
            "<edge source=\"a\" target=\"b\"><data key=\"c\">10mbit</data><data key=\"d\">4</data></edge>",
        );
        let topology = topology.unwrap();
        assert_eq!(topology.nodes[0], PlanNode { id: "a".to_owned(), cpu: Some(0.5) });
        assert_eq!(topology.links.len(), 2);
        assert_eq!(topology.links[0].capacity, Capacity::from_bits_per_s(10_000_000).ok());
        assert_eq!(topology.links[1].delay, Duration::from_millis(4));
        let directed =
            "<edge source=\"a\" target=\"b\" directed=\"true\"><data key=\"c\">1mbit</data></edge>";
        assert_eq!(read_graph(directed).unwrap().links.len(), 1);
    }

    #[test]
    fn loops_missing_weights_and_unknown_nodes_are_named_with_their_line() {
        let edge = |ends: &str, data: &str| read_graph(&format!("<edge {ends}>{data}</edge>"));
        let capacity = "<data key=\"c\">1mbit</data>";
        for (ends, data, expected) in [
            ("source=\"a\" target=\"a\"", capacity, "line 6: the edge a → a is a loop: remove it"),
            ("source=\"a\" target=\"b\"", "", "line 6: the edge a → b has no weight capacity"),
            (
                "source=\"a\" target=\"x\"",
                capacity,
                "line 6: the target \"x\" of an edge is no node",
            ),
            ("target=\"b\"", capacity, "line 6: the source \"\" of an edge is no node"),
            (
                "source=\"a\" target=\"b\"",
                "<data key=\"c\">fast</data>",
                "line 6: the edge a → b: capacity",
            ),
            (
                "source=\"a\" target=\"b\"",
                "<data key=\"c\">0mbit</data>",
                "line 6: the edge a → b: capacity",
            ),
        ] {
            let error = edge(ends, data).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
        let twice = "<edge source=\"a\" target=\"b\"><data key=\"c\">1mbit</data></edge>".repeat(2);
        assert!(read_graph(&twice).unwrap_err().contains("parallel"));
    }

    #[test]
    fn documents_that_are_no_graph_are_rejected() {
        assert!(read("<graphml>").unwrap_err().to_string().starts_with("invalid XML"));
        assert!(read("<svg/>").unwrap_err().to_string().contains("no <graph>"));
        assert!(read_graph("<hyperedge/>").unwrap_err().contains("hyperedge"));
        let loud = "<!DOCTYPE a [<!ENTITY b \"&b;&b;\">]><graphml>&b;</graphml>";
        assert!(read(loud).is_err());
    }
}
