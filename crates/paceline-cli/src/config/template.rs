//! The file that `paceline node --print-config` prints.

/// Every key with its meaning, range and default. A key stands behind a bare `#`, what is said of it
/// behind `# `: without the bare ones it is a configuration that holds every key.
pub(crate) const TEMPLATE: &str = r#"# Configuration of a Paceline node: TOML 1.0.
#
# Looked for in $PACELINE_CONFIG, $XDG_CONFIG_HOME/paceline/config.toml (~/.config if not set) and
# /etc/paceline/config.toml: the first one holds. Flags and environment variables win over it.
# Check it:  paceline node --check-config
# Reload it: kill -HUP; log, capacity and buffers change at once, the log says what needs a restart.

# What people call this node. Text of 1 to 255 bytes.
# Default: the host name and the number of the process.
#name = "gate"

# The folder that joins the processes of this host. An absolute path of 2 to 97 bytes.
# Default: $PACELINE_RUNTIME_DIR, else $XDG_RUNTIME_DIR/paceline, else /tmp/paceline-USERID.
#runtime_dir = "/run/paceline"

# Stays apart from the other processes of this host: only the links below. true or false.
# Default: false.
#isolated = false

# What is logged to standard error: off, error, warn, info, debug or trace, or a list of
# TARGET=LEVEL. Zenoh logs errors only unless the list names zenoh.
# Default: "warn".
#log = "warn"

# A link to other hosts: at most two, each under a [[link]] of its own.
#[[link]]
# Text of 1 to 255 bytes. Default: link1, link2.
#name = "radio"
# Where it waits for neighbours, and whom it reaches out to: each a list of 1 to 64 endpoints
# PROTOCOL/ADDRESS with protocol tcp, udp, tls or unixsock-stream. At least one of the two.
#listen = ["tcp/127.0.0.1:7600"]
#connect = ["tcp/192.0.2.1:7600"]
# What it carries on the wire, headers counted: a number above 0 and bit, kbit, mbit, gbit, B/s, kB/s,
# MB/s or GB/s. Default: none; then it takes whatever comes and can hold no contract.
#capacity = "2mbit"
# Which discipline schedules it: "vds" (the default), "dwcs", "edf", "static-priority", "fifo" …;
# docs/cli.md has all.
#policy = "vds"
# Allows listening beyond this host without TLS. true or false. Default: false.
#insecure = false

# A pull buffer: what matches the pattern is kept for whoever asks later. At most 64.
#[[buffer]]
# A tag, or a pattern: * stands for one chunk, ** for any number. No default.
#pattern = "robot/**"
# The most samples: a whole number from 1 to 1000000. Default: no limit beside the other two, or 1000
# if neither is given.
#samples = 300
# The most bytes of payload: a whole number from 1 to 4294967296. Default: 268435456.
#bytes = 67108864
# How old a sample may become: a whole number with ms, s, min or h, from 1ms to 24h. Default: 24h.
#age = "10s"
"#;
