//! The file that `paceline node --print-config` prints.

/// Every key with its meaning, range and default. A key stands behind a bare `#`, what is said of it
/// behind `# `: without the bare ones it is a configuration that holds every key.
pub(crate) const TEMPLATE: &str = r#"# Configuration of a Paceline node: TOML 1.0.
#
# Looked for in $PACELINE_CONFIG, $XDG_CONFIG_HOME/paceline/config.toml (~/.config if not set) and
# /etc/paceline/config.toml: the first one holds. Flags and environment variables win over it.
# Check it:  paceline node --check-config
# Reload it: kill -HUP; log, capacity, classes and buffers change at once, the log says what needs a restart.

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

# Serves the dashboard, its API and metrics here: an address of this host with a port, or unix:/PATH.
# Default: none.
#http = "127.0.0.1:8470"

# A link to other hosts: at most 16, each under a [[link]] of its own.
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

# A class of the link above: they share it, and each stream belongs to the first that takes it; what
# none takes has a class "default". At most 64. Default: none; then all streams are in one.
#[[link.class]]
# Text of 1 to 64 bytes, of which no two are alike. No default.
#name = "contracts"
# What it takes: streams to these next hops, from these nodes, on these tags or patterns, and with
# (false) or without (true) a contract; all that is said must hold. Default: any.
#peers = ["operator"]
#nodes = ["robot"]
#tags = ["robot/**"]
#best_effort = false
# What it is guaranteed, what it has beside its siblings while all are busy, and the most that it gets:
# bits per second, {m1_bits_per_s, d_ns, m2_bits_per_s} or {burst_bytes, within_ns, rate_bits_per_s}.
# Default: no guarantee, a share, no limit.
#real_time = { burst_bytes = 1500, within_ns = 20000000, rate_bits_per_s = 400000 }
#link_share = 1000000
#upper_limit = 2000000
# Which of its streams goes first. Default: the policy of the link.
#discipline = "vds"
#[[link.class]]
#name = "others"
# The class above it, which takes no streams then. Default: the link.
#[[link.class]]
#name = "peers"
#parent = "others"
# In place of link_share: percent of what the class above has, 1 to 100. Default: an even part of what the
# others leave.
#share = 100
# Each next hop has a class of its own below this one. true or false. Default: false.
#per_peer = true
# What its streams may send (docs/policing.md), ending with else drop or else delay. Default: no limit.
#police = "leaky:20kB,400kbit + leaky:100p,500p/s else drop"

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
