//! Code that the programs of Paceline share: parsers of command-line values, exit codes, the log, terminal output,
//! tables and statistics.
//!
//! A program parses its values with [`args`], prints with [`show`] and [`table`], and returns the exit code of
//! [`exit::report`]:
//!
//! ```
//! use paceline_tool::{args, exit, table};
//! use paceline_tool::table::{Align, Table};
//!
//! let mut links = Table::new(&[("link", Align::Left), ("capacity", Align::Right)]);
//! let capacity = args::capacity("2mbit").map_err(exit::usage)?;
//! links.row(vec!["radio".to_owned(), capacity.to_string()]);
//! assert!(links.render(table::WIDTH).contains("2 Mbit/s"));
//! # anyhow::Ok(())
//! ```
//!
//! The interface is not stable: it changes with the programs.

pub mod args;
pub mod describe;
pub mod exit;
pub mod host;
pub mod input;
pub mod log;
pub mod ros;
pub mod scratch;
pub mod show;
pub mod spelling;
pub mod stats;
pub mod stop;
pub mod table;
pub mod threads;
