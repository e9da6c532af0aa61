//! QUIC without a congestion control of its own: the link's pacer sends no faster than its capacity.

use quinn::congestion::{Controller, ControllerFactory};
use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

/// The window in bytes, which is never reached: the peer's credit ends before.
const WINDOW: u64 = 1 << 30;

/// Controllers of QUIC with a fixed window, for connections on which a link paces.
#[derive(Clone, Copy, Debug)]
pub struct NoCongestionControl;

impl ControllerFactory for NoCongestionControl {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(*self)
    }
}

impl Controller for NoCongestionControl {
    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: u64) {}

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        WINDOW
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(*self)
    }

    fn initial_window(&self) -> u64 {
        WINDOW
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
