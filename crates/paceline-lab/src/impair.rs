//! `paceline-lab impair`: joins two arbitrary programs by an impaired network.
//!
//! Each end is a network namespace with a TUN device. A thread of this process carries packets
//! between them through the emulator that the simulator uses, too.

mod args;
mod link;
mod pump;
mod report;
mod self_test;
mod side;

pub(crate) use args::PathArgs;
pub(crate) use link::{End, Link};
pub(crate) use pump::DIRECTIONS;

use crate::netns::{self, Namespace};
use anyhow::Result;
use args::NetworkArgs;
use paceline_sched::Duration;
use paceline_tool::exit;
use paceline_tool::scratch::Scratch;
use paceline_tool::stop::{STOP_SLICE, Stop};
use report::Report;
use side::Program;
use std::process::ExitCode;
use std::time::Instant;

/// The addresses of the two ends.
const NEAR: &str = "10.254.78.1";
const FAR: &str = "10.254.78.2";

/// Joins two network namespaces by an impaired network, until Ctrl-C or until a program in them
/// ends
#[derive(clap::Args, Debug)]
pub(crate) struct ImpairArgs {
    #[command(flatten)]
    network: NetworkArgs,
    /// Run this in the first namespace, by sh; impair ends with it and with its exit code
    #[arg(long, value_name = "COMMAND")]
    near: Option<String>,
    /// Run this in the second namespace, by sh; it is ended when --near ends
    #[arg(long, value_name = "COMMAND")]
    far: Option<String>,
    /// Print packet statistics as JSON, one document per second and one at the end
    #[arg(long)]
    json: bool,
    /// Measure the emulator's own delay and throughput on this host, and end
    #[arg(long, conflicts_with_all = ["near", "far"])]
    self_test: bool,
}

/// Runs the command; returns a usage error if this host cannot.
pub(crate) fn run(args: &ImpairArgs) -> Result<ExitCode> {
    if !netns::may_build() {
        return Err(exit::usage(
            "impair creates network namespaces and TUN devices, which needs root; try sudo",
        ));
    }
    let stop = Stop::on_signals()?;
    netns::remove_leftovers();
    let (near, far) = (Namespace::new("pln")?, Namespace::new("plf")?);
    let impairments = args.network.at(Duration::ZERO);
    let ends = [(&near, NEAR), (&far, FAR)];
    let ends =
        ends.map(|(namespace, address)| End { namespace, device: namespace.name(), address });
    let link = Link::new(ends, impairments, args.network.path.seed)?;
    if args.self_test {
        return self_test::run(&near, &far, &link);
    }
    let scratch = Scratch::new("impair")?;
    let mut session = Session { args, ends: [&near, &far], link, start: Instant::now() };
    session.run(&scratch, &stop)
}

/// A run, from its first packet to its report.
struct Session<'a> {
    args: &'a ImpairArgs,
    ends: [&'a Namespace; 2],
    link: Link,
    start: Instant,
}

impl Session<'_> {
    fn run(&mut self, scratch: &Scratch, stop: &Stop) -> Result<ExitCode> {
        let [near, far] = self.ends;
        let start = |namespace: &Namespace, command: &Option<String>| {
            let start = |text| Program::start(namespace, text, &scratch.host(), self.args.json);
            command.as_deref().map(start).transpose()
        };
        // The far program starts first, because it is usually the server.
        let mut far_program = start(far, &self.args.far)?;
        let mut near_program = start(near, &self.args.near)?;
        if near_program.is_none() && far_program.is_none() {
            report::print_usage(self.ends);
        }
        let leading = near_program.as_mut().or(far_program.as_mut());
        let code = self.watch(leading, stop)?;
        let ended_early = far_program.iter_mut().any(|program| program.ended_early());
        drop((near_program, far_program));
        if ended_early && self.args.near.is_some() {
            eprintln!("impair: the --far command ended early");
        }
        self.report(true)?;
        Ok(code)
    }

    /// Waits until the leading program ends or the user stops the command.
    fn watch(&mut self, mut leading: Option<&mut Program>, stop: &Stop) -> Result<ExitCode> {
        let mut next_report = self.start + std::time::Duration::from_secs(1);
        let mut change = self.args.network.next_change(Duration::ZERO);
        loop {
            if let Some(leading) = &mut leading
                && let Some(code) = leading.ended()?
            {
                return Ok(code);
            }
            self.link.check()?;
            let elapsed: Duration = self.start.elapsed().into();
            if change.is_some_and(|change| change <= elapsed) {
                self.link.set(self.args.network.at(elapsed));
                change = self.args.network.next_change(elapsed);
            }
            if Instant::now() >= next_report {
                next_report += std::time::Duration::from_secs(1);
                self.report(false)?;
            }
            let slice = change
                .map_or(STOP_SLICE, |change| STOP_SLICE.min(change.saturating_sub(elapsed).into()));
            if stop.wait_until(Instant::now() + slice) {
                let code = if leading.is_some() { exit::INTERRUPTED } else { 0 };
                return Ok(ExitCode::from(code));
            }
        }
    }

    fn report(&self, last: bool) -> Result<()> {
        if !self.args.json && !last {
            return Ok(());
        }
        let traffic = self.link.traffic();
        let report = Report::new(self.start.elapsed(), traffic, self.ends, last);
        if self.args.json {
            return report.print_json();
        }
        report.print();
        Ok(())
    }
}
