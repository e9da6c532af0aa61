//! Generates the dashboard's types from the structs of the API. This test checks
//! `web/src/api.gen.ts`; with `PACELINE_REWRITE_TYPES=1` it writes the file.

use super::super::history::{LinkPast, Past, SubscriptionPast};
use super::super::values::{Value, Values};
use super::{
    Change, Comparison, ContractState, Known, ObserverState, State, Switch, Turn, WorldChange,
    WorldReading, WorldState,
};
use paceline::delivery::TimedStatus;
use paceline::status::{
    BufferStatus, ClassStatus, DropReason, ElasticStatus, LinkCounters, LinkStatus,
    MeasuredCapacity, MediumStatus, MemoryStatus, MutedStatus, NeighbourStatus, NetworkHealth,
    NodeStatus, PlayersStatus, ProcessorStatus, ProcessorWait, PublisherStatus, QueueStatus,
    Repairs, RequestedForm, Reservation, ReservedHop, StalledThread, StreamContract, StreamStatus,
    SubscriptionHealth, SubscriptionStatus, SummedAges, UnreadStatus,
};
use paceline::time::{ClockReport, SourceReport, TimeService};
use std::path::Path;
use ts_rs::{Config, TS};

fn written() -> String {
    let config = Config::new().with_large_int("number");
    let reasons: Vec<String> =
        DropReason::ALL.iter().map(|reason| format!("\"{}\"", reason.name())).collect();
    let mut text = format!(
        "// Written from the structs of the API by PACELINE_REWRITE_TYPES=1 cargo test; not by hand.\n\n\
         export type Reason = {};\n\nexport type Drops = {{ [reason in Reason]?: number }};\n",
        reasons.join(" | ")
    );
    for decl in [
        State::decl(&config),
        Known::decl(&config),
        Switch::decl(&config),
        Turn::decl(&config),
        Change::decl(&config),
        Comparison::decl(&config),
        WorldChange::decl(&config),
        WorldState::decl(&config),
        ObserverState::decl(&config),
        WorldReading::decl(&config),
        ContractState::decl(&config),
        Past::decl(&config),
        SubscriptionPast::decl(&config),
        LinkPast::decl(&config),
        Values::decl(&config),
        Value::decl(&config),
        NodeStatus::decl(&config),
        PublisherStatus::decl(&config),
        SubscriptionStatus::decl(&config),
        ElasticStatus::decl(&config),
        SubscriptionHealth::decl(&config),
        NetworkHealth::decl(&config),
        TimedStatus::decl(&config),
        PlayersStatus::decl(&config),
        ClockReport::decl(&config),
        TimeService::decl(&config),
        SourceReport::decl(&config),
        RequestedForm::decl(&config),
        BufferStatus::decl(&config),
        LinkStatus::decl(&config),
        MeasuredCapacity::decl(&config),
        MediumStatus::decl(&config),
        NeighbourStatus::decl(&config),
        MemoryStatus::decl(&config),
        Reservation::decl(&config),
        ReservedHop::decl(&config),
        ProcessorStatus::decl(&config),
        ProcessorWait::decl(&config),
        StreamStatus::decl(&config),
        StreamContract::decl(&config),
        SummedAges::decl(&config),
        LinkCounters::decl(&config),
        ClassStatus::decl(&config),
        MutedStatus::decl(&config),
        Repairs::decl(&config),
        QueueStatus::decl(&config),
        StalledThread::decl(&config),
        UnreadStatus::decl(&config),
    ] {
        text.push_str(&format!("\nexport {decl}\n"));
    }
    text
}

#[test]
fn the_types_of_the_page_are_those_of_the_api() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src/api.gen.ts");
    if std::env::var_os("PACELINE_REWRITE_TYPES").is_some() {
        std::fs::write(&path, written()).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == written(),
        "web/src/api.gen.ts is out of date: PACELINE_REWRITE_TYPES=1 \
         regenerates it"
    );
}
