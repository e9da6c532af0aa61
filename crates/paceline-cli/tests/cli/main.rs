//! The built command, run as people run it: in processes of its own, on a host of its own.

mod bad_input;
mod files;
mod host;
mod kills;
mod links;
mod meet;
mod signals;
