//! Checks the machine: kernel, cores, clock and frequencies.

use super::row::{Row, State, line_of, ok_if};
use std::collections::BTreeSet;

/// The oldest maintained kernel.
const KERNEL_MIN: (u32, u32) = (5, 10);
/// The largest part of the time in which tasks wait for a processor.
const LOAD_MAX_PERCENT: f64 = 20.0;
/// Clock sources that are slow to read or coarse.
const SLOW_CLOCKS: [&str; 5] = ["acpi_pm", "hpet", "jiffies", "pit", "refined-jiffies"];

pub(super) fn kernel() -> Row {
    kernel_row(line_of("/proc/sys/kernel/osrelease").as_deref())
}

fn kernel_row(release: Option<&str>) -> Row {
    let mut numbers = release.unwrap_or_default().split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next().and_then(|text| text.parse::<u32>().ok());
    let state = match (number(), number()) {
        (Some(major), Some(minor)) => ok_if((major, minor) >= KERNEL_MIN),
        _ => State::Unknown,
    };
    let found = release.map_or_else(|| "unknown".to_owned(), |release| format!("Linux {release}"));
    Row::new("kernel", &found, "Linux 5.10 or later", state, "update the system's kernel package")
}

pub(super) fn cores() -> Row {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Row::new(
        "cores",
        &cores.to_string(),
        "2 or more",
        ok_if(cores >= 2),
        "give the machine or container two cores (docker run --cpus 2): links and applications \
         then do not wait for each other",
    )
}

pub(super) fn load() -> Row {
    load_row(line_of("/proc/pressure/cpu").as_deref())
}

/// Reads a line such as `some avg10=12.34 avg60=3.20 avg300=1.00 total=1234`.
fn load_row(pressure: Option<&str>) -> Row {
    let fields = pressure.map(str::split_whitespace).into_iter().flatten();
    let part = fields.filter_map(|field| field.strip_prefix("avg10=")).next();
    let part = part.and_then(|part| part.parse::<f64>().ok());
    let found = part.map_or_else(
        || "unknown".to_owned(),
        |part| format!("tasks waited for a processor in {part:.0} % of 10 s"),
    );
    Row::new(
        "processor load",
        &found,
        "below 20 %",
        part.map_or(State::Unknown, |part| ok_if(part < LOAD_MAX_PERCENT)),
        "set realtime = true for nodes with contracts, request fewer scaled forms, or end other programs",
    )
}

pub(super) fn clock_source() -> Row {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    clock_row(line_of(path).as_deref())
}

fn clock_row(source: Option<&str>) -> Row {
    let state = source.map_or(State::Unknown, |source| ok_if(!SLOW_CLOCKS.contains(&source)));
    Row::new(
        "clock source",
        source.unwrap_or("unknown"),
        "fast and precise: tsc, kvm-clock, arch_sys_counter",
        state,
        "boot with clocksource=tsc if \
         /sys/devices/system/clocksource/clocksource0/available_clocksource lists it",
    )
}

pub(super) fn governor() -> Row {
    let mut governors = BTreeSet::new();
    for entry in std::fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten() {
        let path = entry.path().join("cpufreq/scaling_governor");
        governors.extend(path.to_str().and_then(line_of));
    }
    governor_row(&governors)
}

fn governor_row(governors: &BTreeSet<String>) -> Row {
    let found: Vec<&str> = governors.iter().map(String::as_str).collect();
    let (found, state) = match found.as_slice() {
        [] => ("not available here".to_owned(), State::Unknown),
        all => (all.join(", "), ok_if(all == ["performance"])),
    };
    Row::new(
        "CPU governor",
        &found,
        "performance",
        state,
        "cpupower frequency-set -g performance (otherwise wake-ups take longer while the host is \
         idle)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_compared_by_number() {
        for (release, state) in [
            (Some("6.1.0-18-amd64"), State::Ok),
            (Some("5.10.0"), State::Ok),
            (Some("5.9.16"), State::Lack),
            (Some("4.19.0"), State::Lack),
            (Some("next"), State::Unknown),
            (None, State::Unknown),
        ] {
            assert_eq!(kernel_row(release).state, state, "{release:?}");
        }
    }

    #[test]
    fn a_busy_processor_is_a_lack() {
        let row = |part: &str| load_row(Some(&format!("some avg10={part} avg60=0.00 total=9")));
        assert_eq!((row("19.90").state, row("43.40").state), (State::Ok, State::Lack));
        assert_eq!(row("43.40").found, "tasks waited for a processor in 43 % of 10 s");
        assert!(row("43.40").fix.is_some_and(|fix| fix.contains("realtime")));
        assert_eq!(load_row(None).state, State::Unknown);
    }

    #[test]
    fn slow_clocks_are_a_lack() {
        assert_eq!(clock_row(Some("tsc")).state, State::Ok);
        let slow = clock_row(Some("hpet"));
        assert_eq!(slow.state, State::Lack);
        assert!(slow.fix.unwrap().contains("clocksource=tsc"));
        assert_eq!(clock_row(None).state, State::Unknown);
    }

    #[test]
    fn one_core_that_saves_power_is_a_lack() {
        let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(governor_row(&set(&["performance"])).state, State::Ok);
        let mixed = governor_row(&set(&["performance", "powersave"]));
        assert_eq!((mixed.state, mixed.found.as_str()), (State::Lack, "performance, powersave"));
        assert_eq!(governor_row(&set(&[])).state, State::Unknown);
    }
}
