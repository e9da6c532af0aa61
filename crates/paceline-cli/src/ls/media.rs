//! The table of shared media.

use paceline::status::NodeId;
use paceline_http::status::StatusDocument;
use paceline_tool::show;
use paceline_tool::table::{Align::Left, Align::Right, Table};

/// Returns a row for each link on a medium. `named` returns the name of a node.
pub(super) fn table(document: &StatusDocument, named: impl Fn(NodeId) -> String) -> Table {
    let mut table = Table::new(&[
        ("medium", Left),
        ("link", Left),
        ("rate", Right),
        ("reserved by all", Right),
        ("at most", Right),
        ("links", Right),
        ("manager", Left),
    ]);
    let links = document.nodes.iter().flat_map(|node| node.links.iter().map(move |it| (node, it)));
    for (node, link) in links {
        let Some(medium) = &link.medium else { continue };
        table.row(vec![
            medium.name.clone(),
            format!("{}.{}", node.name, link.name),
            show::bits(medium.allotted_bits_per_s),
            show::bits(medium.reserved_bits_per_s),
            show::bits(medium.allottable_bits_per_s),
            medium.links.to_string(),
            named(medium.manager),
        ]);
    }
    table
}
