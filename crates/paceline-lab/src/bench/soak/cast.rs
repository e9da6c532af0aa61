//! The processes of the run: nodes, publishers and subscribers on three hosts.

use super::super::meet::free_port;
use super::super::terminal::Terminal;
use super::sums;
use super::vitals::{Growth, Vitals};
use anyhow::{Context as _, Result, bail};
use paceline_tool::scratch::Scratch;
use rustix::process::Signal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A process that can be killed and restarted.
struct Actor {
    name: &'static str,
    host: PathBuf,
    words: Vec<String>,
    /// True if the process prints a line per received sample.
    subscribes: bool,
    /// True if the process is never a victim; its resource usage is observed instead.
    spared: bool,
    process: Option<Terminal>,
    stopped: bool,
    /// The time of the last line.
    last_line_at: Option<Instant>,
    vitals: Vec<Vitals>,
}

pub(super) struct Cast {
    actors: Vec<Actor>,
    victims: Vec<usize>,
    looked: Instant,
}

const STEERING_BYTES: &str = "64";

impl Cast {
    /// Starts the demo's scenario, each part as its own process.
    pub(super) fn start(scratch: &Scratch) -> Result<Self> {
        let [robot, console, operator] = [scratch.host(), scratch.host(), scratch.host()];
        let (lan, thin) = (free_port()?, free_port()?);
        std::fs::create_dir_all(&robot).context("the robot's folder")?;
        let steering = robot.with_extension("steering");
        std::fs::write(&steering, vec![0x5a; 6_400]).context("the steering commands")?;
        let steering = steering.to_str().context("a path that is text")?;
        let actor = |name, host: &PathBuf, words: &str| Actor {
            name,
            host: host.clone(),
            words: words.split_whitespace().chain(["--json"]).map(str::to_owned).collect(),
            subscribes: words.starts_with("sub "),
            spared: false,
            process: None,
            stopped: false,
            last_line_at: None,
            vitals: Vec::new(),
        };
        let spared = |actor| Actor { spared: true, ..actor };
        let lan_at = format!("tcp/127.0.0.1:{lan}");
        let thin_at = format!("tcp/127.0.0.1:{thin},capacity=2mbit");
        let robots = format!(
            "node --name robot --link name=lan,listen={lan_at} --link name=thin,listen={thin_at}"
        );
        let consoles = format!("node --name console --link name=lan,connect={lan_at}");
        let operators = format!("node --name operator --link name=thin,connect={thin_at}");
        let steer = format!(
            "pub robot/steer --file {steering} --chunk {STEERING_BYTES}B --hz 100 --loop --late"
        );
        let small = "sub robot/camera --size 160x120 --max-hz 5 --within 200ms --loss 1/10";
        let mut cast = Self {
            actors: vec![
                actor("the robot's node", &robot, &robots),
                spared(actor("the operator's node", &operator, &operators)),
                actor("the console's node", &console, &consoles),
                actor("the camera", &robot, "pub robot/camera --test-card 320x240@30"),
                actor("steering", &robot, &steer),
                actor("the console's pictures", &console, "sub robot/camera"),
                actor("the operator's pictures", &operator, small),
                spared(actor(
                    "the operator's steering",
                    &operator,
                    "sub robot/steer --within 50ms",
                )),
            ],
            victims: Vec::new(),
            looked: Instant::now(),
        };
        cast.victims = (0..).zip(&cast.actors).filter(|(_, a)| !a.spared).map(|(n, _)| n).collect();
        for actor in &mut cast.actors {
            actor.start()?;
        }
        Ok(cast)
    }

    /// Returns the indices of the possible victims.
    pub(super) fn victims(&self) -> &[usize] {
        &self.victims
    }

    fn actor(&mut self, place: usize) -> Result<&mut Actor> {
        self.actors.get_mut(place).context("a process of the run")
    }

    /// Kills a process without notice.
    pub(super) fn kill(&mut self, victim: usize) -> Result<()> {
        // Dropping the terminal kills its process.
        self.actor(victim)?.process = None;
        Ok(())
    }

    pub(super) fn restart(&mut self, victim: usize) -> Result<()> {
        self.actor(victim)?.start()
    }

    /// Stops a process by a signal.
    pub(super) fn stop(&mut self, victim: usize) -> Result<()> {
        let actor = self.actor(victim)?;
        actor.stopped = true;
        actor.signal(Signal::STOP)
    }

    pub(super) fn go_on(&mut self, victim: usize) -> Result<()> {
        let actor = self.actor(victim)?;
        actor.stopped = false;
        actor.signal(Signal::CONT)
    }

    /// Notes the subscribers' last lines, and every `every` the resource usage of the spared
    /// processes.
    ///
    /// # Errors
    /// Returns an error if a process has ended by itself.
    pub(super) fn look(&mut self, every: Duration) -> Result<()> {
        let due = self.looked.elapsed() >= every;
        if due {
            self.looked = Instant::now();
        }
        for actor in &mut self.actors {
            let Some(process) = &mut actor.process else { continue };
            if let Some(last) = process.last_line() {
                actor.last_line_at = Some(last);
            }
            if let Some(status) = process.ended()? {
                bail!("{} ended by itself: {status}", actor.name);
            }
            if due && actor.spared {
                actor.vitals.push(Vitals::read(process.id())?);
            }
        }
        Ok(())
    }

    /// Returns the running subscribers that received nothing after `since`.
    pub(super) fn silent_since(&self, since: Instant) -> Vec<&'static str> {
        let there =
            self.actors.iter().filter(|a| a.subscribes && a.process.is_some() && !a.stopped);
        there.filter(|a| a.last_line_at.is_none_or(|at| at < since)).map(|a| a.name).collect()
    }

    /// Ends the publishers normally; returns the number of streams whose counters do not add up.
    pub(super) fn finish(&mut self) -> Result<u64> {
        for actor in self.actors.iter_mut().filter(|a| a.words.first().is_some_and(|w| w == "pub"))
        {
            if let Some(mut process) = actor.process.take() {
                process.end()?;
            }
        }
        // By then every sample in flight has arrived or is counted as lost.
        std::thread::sleep(Duration::from_secs(2));
        let host =
            self.actors.first().map(|robot| robot.host.clone()).context("the robot's host")?;
        sums::unequal(&host)
    }

    /// Returns the growth of the processes that are never victims.
    pub(super) fn growth(&self) -> impl Iterator<Item = (&'static str, Growth)> {
        let spared = self.actors.iter().filter(|actor| actor.spared);
        spared.map(|actor| (actor.name, Growth::of(&actor.vitals)))
    }
}

impl Actor {
    fn start(&mut self) -> Result<()> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        self.process = Some(Terminal::start(&words, &self.host, None)?);
        Ok(())
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        self.process.as_ref().context("a running process")?.signal(signal)
    }
}
