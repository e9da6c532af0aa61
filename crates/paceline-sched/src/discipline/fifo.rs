//! First in, first out.

use super::WindowState;
use super::scheduler::{Arrival, Ranking};
use super::stream::Promise;
use crate::contract::LossTolerance;

/// In order of arrival, contract or not.
#[derive(Clone, Debug)]
pub(super) struct Rules;

impl Ranking for Rules {
    type Key = Arrival;
    type Window = ();

    fn open(_: LossTolerance) {}

    fn rank(arrival: Arrival, _: Option<&Promise<()>>) -> Option<Arrival> {
        Some(arrival)
    }

    fn state(promise: &Promise<()>) -> WindowState {
        promise.account.state(promise.contract.loss)
    }
}
