//! The table of shared media.

use super::view::{all_links, named, names};
use paceline_http::status::StatusDocument;
use paceline_tool::show;
use paceline_tool::table::{Align::Left, Align::Right, Table};

/// Returns a row for each link on a medium.
pub(super) fn table(document: &StatusDocument) -> Table {
    let mut table = Table::new(&[
        ("medium", Left),
        ("link", Left),
        ("rate", Right),
        ("reserved by all", Right),
        ("capacity", Right),
        ("links", Right),
        ("manager", Left),
    ]);
    let names = names(document);
    for (node, link) in all_links(document) {
        let Some(medium) = &link.medium else { continue };
        table.row(vec![
            medium.name.clone(),
            format!("{}.{}", node.name, link.name),
            show::bits(medium.allotted_bits_per_s),
            show::bits(medium.reserved_bits_per_s),
            show::bits(medium.capacity_bits_per_s),
            medium.links.to_string(),
            named(&names, medium.manager),
        ]);
    }
    table
}
