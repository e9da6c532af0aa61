//! Real-time priorities of the threads that samples wait for, and locked memory.
//!
//! With SCHED_FIFO a thread runs before all ordinary ones, so the processor is reserved for it. The kernel leaves ordinary
//! threads 5 % of each second (`sched_rt_runtime_us`), so a busy node cannot lock up its host.

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, getrlimit};
use thread_priority::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue,
    ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id, thread_schedule_policy,
};

/// The work of a thread.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// Schedules, sends or receives on a link.
    Link,
    /// Decides about streams and reservations.
    Engine,
    /// Scales samples.
    Scaling,
}

impl Role {
    /// Returns the priority, from 1 to 99; higher ones run first. It is below those of the kernel's own threads.
    const fn priority(self) -> u8 {
        match self {
            Self::Link => 20,
            Self::Engine => 10,
            Self::Scaling => 1,
        }
    }
}

/// Gives the calling thread the real-time priority of its work.
pub(crate) fn enter(role: Role) -> Result<(), String> {
    let value = ThreadPriorityValue::try_from(role.priority())?;
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let set = set_thread_priority_and_policy(
        thread_native_id(),
        ThreadPriority::Crossplatform(value),
        policy,
    );
    set.map_err(|error| format!("{error:?}"))
}

/// Gives the calling thread an ordinary priority: it inherited that of the thread that started it.
pub(crate) fn leave() {
    if let Ok(ThreadSchedulePolicy::Realtime(_)) = thread_schedule_policy() {
        let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);
        let set = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy);
        if let Err(error) = set {
            crate::warn_limited!("a thread keeps its real-time priority: {error:?}");
        }
    }
}

/// Returns why the threads of this process may not have real-time priorities, if they may not. Otherwise locks the
/// memory of the process, if that is permitted without a limit: with one, later allocations could fail.
pub(crate) fn prepare() -> Result<(), String> {
    let tried = std::thread::spawn(|| enter(Role::Link)).join();
    tried.unwrap_or_else(|_| Err("its thread panicked".to_owned()))?;
    if getrlimit(Resource::Memlock).current.is_none() {
        let flags = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
        if let Err(error) = mlockall(flags) {
            tracing::warn!("cannot lock memory: {error}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_leave_are_ordinary_again() {
        let left = std::thread::spawn(|| {
            enter(Role::Engine)?;
            let inherits = || {
                let inherited =
                    matches!(thread_schedule_policy(), Ok(ThreadSchedulePolicy::Realtime(_)));
                leave();
                (inherited, thread_schedule_policy())
            };
            std::thread::spawn(inherits).join().map_err(|_| "it panicked".to_owned())
        });
        match left.join().unwrap() {
            Ok((inherited, policy)) => {
                assert!(inherited);
                assert!(matches!(policy, Ok(ThreadSchedulePolicy::Normal(_))), "{policy:?}");
            }
            Err(reason) => println!("skipped: priorities of threads ({reason})"),
        }
    }

    #[test]
    fn a_thread_gets_its_priority_or_a_reason() {
        for role in [Role::Link, Role::Engine, Role::Scaling] {
            let entered = std::thread::spawn(move || {
                enter(role)?;
                std::fs::read_to_string("/proc/thread-self/stat").map_err(|error| error.to_string())
            });
            match entered.join().unwrap() {
                Ok(stat) => {
                    // Fields 40 and 41 are the priority and the policy; 1 is SCHED_FIFO. The name may contain spaces.
                    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split(' ').collect();
                    assert_eq!(
                        fields[38..40],
                        [role.priority().to_string().as_str(), "1"],
                        "{stat}"
                    );
                }
                Err(reason) => println!("skipped: priorities of threads ({reason})"),
            }
        }
    }
}
