//! The configuration template printed by `paceline node --print-config`.

/// Lists every key with its meaning, range and default. A bare `#` precedes a key, `# ` precedes an
/// explanation. Without the bare `#` characters the template is a configuration with every key.
pub(crate) const TEMPLATE: &str = r#"# Configuration of a Paceline node: TOML 1.0.
#
# Looked for in $PACELINE_CONFIG, $XDG_CONFIG_HOME/paceline/config.toml (~/.config if not set) and
# /etc/paceline/config.toml: the first one holds. Flags and environment variables win over it.
# Check it:  paceline node --check-config
# Reload it: kill -HUP; log, capacity, classes, buffers and rules change at once, the log says what needs a restart.

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

# What of one processor promises may use on this host, in percent: a whole number from 0 to 6400, 0 to charge
# nothing. Counts where paceline doctor --calibrate has measured what samples cost.
# Default: 50.
#processor_percent = 50

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
# docs/reference/cli.md has all.
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
# a rate such as "2mbit", {m1, d, m2} (rate m1 for the time d, then m2) or {burst, within, rate}.
# Default: no guarantee, a share, no limit.
#real_time = { burst = "1500B", within = "20ms", rate = "400kbit" }
#link_share = "1mbit"
#upper_limit = "2mbit"
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
# What its streams may send (docs/concepts/policing.md), ending with else drop or else delay. Default: no limit.
#police = "leaky:20kB,400kbit + leaky:100p,500p/s else drop"

# A pull buffer: what matches the pattern is kept for whoever asks later. At most 64.
#[[buffer]]
# A tag, or a pattern: * stands for one chunk, ** for any number. No default.
#pattern = "robot/**"
# The most samples: a whole number from 1 to 1000000. Default: no limit beside the other two, or 1000
# if neither is given.
#samples = 300
# The largest sum of payloads: a number and B, kB, MB or GB, from 1B to 4294967296B. Default: 268435456B.
#bytes = "64MB"
# How old a sample may become: a number and ms, s, min or h, from 1ms to 24h. Default: 24h.
#age = "10s"

# Where plain Zenoh and ROS 2 programs are met: a Zenoh router of the node's own, apart from the links. It is
# there if this table or a rule below is.
#[plain]
# Where it waits for them, and which Zenoh routers it reaches out to: each a list of 1 to 64 endpoints.
# Default: ["tcp/localhost:7447", "unixsock-stream/RUNTIME_DIR/plain.sock"], and none.
#listen = ["tcp/localhost:7447"]
#connect = ["tcp/localhost:7448"]
# Allows listening beyond this host without TLS. true or false. Default: false.
#insecure = false

# What plain programs put on these keys is published by the node. At most 64.
#[[import]]
# A key expression of Zenoh: * stands for one chunk, ** for any number. No default.
#key = "robot/**"
# The tag that a key becomes: {key} is the key, {1} what its first wildcard stands for. Default: "{key}".
#tag = "{key}"
# Takes the liveliness tokens with these keys in place of samples; the tag has no wildcard then, as
# "robot/@tokens". true or false. Default: false.
#tokens = false
# How many keys it takes: a whole number from 1 to 4096. Default: 256.
#keys = 256
# How many samples a second of each key enter at most; the rest is dropped (policed). A number from 0.001 to 1000000.
# Default: all.
#max_hz = 100
# The largest payload that enters; larger ones are dropped (too_large). A number and B, kB, MB or GB, from 1B to 67MB.
# Default: 67MB.
#max_bytes = "100kB"
# Samples per second that each key is to have, which deadlines are spaced by: a number from 0.001 to
# 1000000. Default: none; then they are spaced as the rate asked for says.
#hz = 30
# What samples are: "data", "state", "picture", "audio" or "video". Default: by their encoding.
#kind = "picture"
# Their media type, whatever they say. Text of 1 to 255 bytes. Default: what they say.
#encoding = "image/jpeg"
# For subscribers that state a delay bound and no loss tolerance: of Y samples at most X. Default: "0/1".
#loss = "1/10"

# A subscription of the node, whose samples are put on keys for plain programs. At most 64.
#[[export]]
# A tag, or a pattern: * stands for one chunk, ** for any number. No default.
#tag = "operator/**"
# The key that a tag becomes: {tag} is the tag, {1} what its first wildcard stands for. Default: "{tag}".
#key = "{1}"
# Declares the liveliness tokens that come on these tags, under their own keys. true or false. Default: false.
#tokens = false
# Subscribes although no plain program listens. true or false. Default: false.
#always = false
# Answers queries for the keys from the pull buffers that hold the tags. true or false. Default: false.
#queries = false
# At most so many samples per second, from 0.001 to 1000000; or one in every so many. Default: every sample.
#max_hz = 10
# Pictures of this size; sound with this rate and these channels. Default: as they are.
#size = "320x240"
#audio = "8000x1"
# The delay bound: a number and ms, s, min or h, from 1ms to 24h. Default: none.
#within = "200ms"
# Of Y samples at most X may be late or lost. Default: what the publisher says.
#loss = "1/10"
# Where rate and size are reduced: "publisher" or "subscriber". Default: "publisher".
#proxy = "publisher"
# What is done about samples lost on links over UDP: "none", "selective" or "go-back-n". Default: "selective".
#retransmit = "selective"
#[[export]]
#tag = "lab/**"
#every = 3

# Queries for these keys, services of ROS 2 for example, that programs of one node answer for programs of another: the
# same rule on both. At most 64.
#[[query]]
# A key expression of Zenoh: * stands for one chunk, ** for any number. No default.
#key = "robot/**"
# The tag below which nodes ask each other. Text of at most 200 bytes without wildcards. Default: "queries".
#tag = "queries"
# Programs here may ask those elsewhere, and those elsewhere may ask these. true or false. Default: true.
#asks = true
#answers = true
# How long a query may take: a number and ms, s, min or h, from 1ms to 24h. Default: 10s.
#timeout = "10s"
# The largest query and the largest answer; larger ones are refused. A number and B, kB, MB or GB, from 1kB to 67MB.
# Default: 1MB.
#max_bytes = "1MB"
# How many queries of programs here wait at a time, and how many of each other node; more are refused. A whole number
# from 1 to 4096. Default: 64.
#at_once = 64
# The delay bound of a query and of an answer, each: a number and ms, s, min or h, from 1ms to 24h. Each may have
# max_bytes. Default: none.
#within = "100ms"
# Queries, or answers, a second that the delay bound is for: a number from 0.001 to 1000000. Default: none.
#hz = 10
"#;
