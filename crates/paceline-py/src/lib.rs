//! The Python module `paceline._native`, one file per class. It converts values, calls the crate
//! `paceline` and maps errors. `python/paceline` adds the parts that are written in Python.
//!
//! No thread of a node ever takes the interpreter's lock, and every call that may block releases
//! it. So a Python program cannot delay a link, and a node cannot delay a program.

mod bell;
mod buffer;
mod clock;
#[cfg(feature = "command")]
mod command;
mod convert;
mod errors;
mod event;
mod feedback;
mod grant;
mod http;
mod life;
mod loan;
mod node;
mod options;
mod payload;
mod publisher;
mod pulled;
mod quote;
mod refusal;
mod sample;
mod shape;
mod status;
mod subscriber;
mod time;
mod timing;
mod view;
mod wait;
mod wish;
mod world;

/// The exported classes and functions.
#[pyo3::pymodule(name = "_native")]
mod native {
    #[pymodule_export]
    use super::bell::Bell;
    #[pymodule_export]
    use super::buffer::Buffer;
    #[pymodule_export]
    use super::clock::{Clock, Reading};
    #[cfg(feature = "command")]
    #[pymodule_export]
    use super::command::{command, thread_setting};
    #[pymodule_export]
    use super::event::{
        Adapted, BestEffort, ChangeRefused, Changed, Excess, Heard, NoSpare, Resumed, Silent,
        Warned, Withdrawn,
    };
    #[pymodule_export]
    use super::feedback::{Feedback, Measured};
    #[pymodule_export]
    use super::grant::{Grant, GrantedHop};
    #[pymodule_export]
    use super::http::HttpServer;
    #[pymodule_export]
    use super::life::{after_fork, end};
    #[pymodule_export]
    use super::loan::Loan;
    #[pymodule_export]
    use super::node::Node;
    #[pymodule_export]
    use super::payload::Payload;
    #[pymodule_export]
    use super::publisher::{Publisher, PutReport};
    #[pymodule_export]
    use super::pulled::{Pulled, Summary};
    #[pymodule_export]
    use super::quote::Quote;
    #[pymodule_export]
    use super::refusal::Refusal;
    #[pymodule_export]
    use super::sample::Sample;
    #[pymodule_export]
    use super::status::{PublisherStatus, SubscriptionStatus};
    #[pymodule_export]
    use super::subscriber::Subscriber;
    #[pymodule_export]
    use super::view::SubscriptionView;
    #[pymodule_export]
    use super::world::{
        Decider, EndsTooSlow, ExchangeTerms, Interest, ObjectView, PairView, ServiceRefused,
        SharedObject, World, WorldEvent,
    };
}
