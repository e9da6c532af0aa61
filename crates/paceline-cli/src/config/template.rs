//! The configuration template printed by `paceline node --print-config`.

/// Lists every key with its meaning, range and default. A bare `#` precedes a key, `# ` precedes an
/// explanation. Without the bare `#` characters the template is a configuration with every key.
pub(crate) const TEMPLATE: &str = r#"# Configuration of a Paceline node: TOML 1.0.
#
# The first existing file applies: $PACELINE_CONFIG, $XDG_CONFIG_HOME/paceline/config.toml (~/.config by default),
# /etc/paceline/config.toml. Flags and environment variables override it.
# Check it:  paceline node --check-config
# Reload it: kill -HUP. Changes of log, capacity, classes, buffers, sources and rules apply at once. The log lists
# changes that need a restart.

# The displayed name of this node. Text of 1 to 255 bytes.
# Default: the host name.
#name = "gate"

# The folder that joins the processes of this host. An absolute path of 2 to 97 bytes.
# Default: $PACELINE_RUNTIME_DIR, else $XDG_RUNTIME_DIR/paceline, else /tmp/paceline-USERID.
#runtime_dir = "/run/paceline"

# Does not connect to other processes of this host, only to the links below. true or false.
# Default: false.
#isolated = false

# The filter for log messages on standard error: off, error, warn, info, debug or trace, or a list of
# TARGET=LEVEL. Zenoh logs only errors unless the list names zenoh.
# Default: "warn".
#log = "warn"

# The address of the dashboard, its API and metrics: an address of this host with a port, or unix:/PATH.
# Default: none.
#http = "127.0.0.1:8470"
# The address at which Foxglove connects: an address of this host with a port, or unix:/PATH. Default: none.
#foxglove = "127.0.0.1:8765"
# The address at which players of RTSP open tags: rtsp://127.0.0.1:8554/robot/camera?max_hz=10. Other hosts reach it only with
# rtsp_login. Default: none.
#rtsp = "127.0.0.1:8554"
# The file with the name and password of players: one line USER:PASSWORD. An absolute path. Default: none.
#rtsp_login = "/etc/paceline/players"
# The UDP address of WebRTC for browsers, which begin their sessions at http: POST /whep/robot/camera?max_hz=10. Behind NAT, add the
# public addresses of this host: "0.0.0.0:8471,public=203.0.113.7". Default: none.
#webrtc = "0.0.0.0:8471"
# The certificate and key of the dashboard and of Foxglove, in PEM format, and a file with their tokens, one per line:
# read TOKEN or change TOKEN. An address that other hosts reach needs all three. Absolute paths. Default: none.
#http_tls_cert = "/etc/paceline/http.pem"
#http_tls_key = "/etc/paceline/http.key"
#http_tokens = "/etc/paceline/http.tokens"

# The share of one processor that contracts may use on this host, in percent: a whole number from 0 to 6400.
# 0 turns the limit off. Requires the costs measured by paceline doctor --calibrate.
# Default: 50.
#processor_percent = 50

# The queue space of this node for contracts, on all its links and for its subscribers together, in bytes on the wire:
# contracts that could queue more together are refused. From 1B to 1000000000000B. Default: 1GB.
#host_buffer = "64MB"

# The memory of this node for the input of all neighbours together: unfinished samples, queued control messages, records
# and current pictures of videos. If it is full, the neighbour with the most unfinished samples loses some. A larger
# sample is refused. From 32MB to 1000000000000B. Default: 134MB.
#neighbour_memory = "64MB"

# Real-time priorities (SCHED_FIFO, 1 to 20) for the threads of this node, so that busy programs do not delay its contracts.
# Needs permission: root, or LimitRTPRIO=20 in the unit. Default: false.
#realtime = true

# The rights of other nodes at this one: an absolute path of a file with [[rule]]; `paceline trust init` writes one.
# A change applies within 2 s. Default: this host's processes have all rights, as have the peers of links that connect
# or are insecure; peers that connect with a certificate have none.
#policy = "/etc/paceline/policy.toml"

# A file with a token of an identity provider, which grants this node rights at others. An absolute path.
# Default: none.
#token = "/etc/paceline/token"

# The clock of the node (paceline clock). Without servers, system and neighbours to follow it is the system clock, with
# an unknown error.
#[clock]
# The NTP servers that it follows, a list of 1 to 16 HOST:PORT, or "HOST:PORT key ID" for one that must use key ID of
# the key file. Of 2n+1 servers, n may be wrong. Default: none.
#servers = ["ntp1.example:123", "ntp2.example:123", "ntp3.example:123", "ntp4.example:123"]
# The symmetric keys of servers and clients: a file with one key per line, as number, AES128 or AES256, and key, in the
# format of chrony's key file. Default: none.
#keys = "/etc/paceline/ntp.keys"
# The shortest and the longest interval of requests to each, from 62.5ms to 36h, rounded down to powers of two of a
# second. The error bound grows between requests. Below 16s only for servers of your own. Default: "16s", "1024s".
#poll = "16s"
#poll_max = "1024s"
# The largest error of the system clock, from 1us to 1s, if chrony or PTP adjusts it: then it counts as one more
# server. Default: it does not count.
#system = "1ms"
# Whether the clock follows those of all neighbours (true) or of none (false). Default: a node without servers and
# system follows the neighbours to which it connects.
#neighbours = true
# The UDP address HOST:PORT of this host at which the node serves time to NTP clients. Default: none.
#serve = "192.0.2.7:123"

# A link to other hosts. At most 16, each under its own [[link]].
#[[link]]
# Text of 1 to 255 bytes. Default: link1, link2.
#name = "radio"
# The endpoints on which it listens for neighbours, and those to which it connects. Each is a list of 1 to 64
# endpoints PROTOCOL/ADDRESS with protocol quic, tls, tcp or unix. At least one list is required.
#listen = ["tcp/127.0.0.1:7600"]
#connect = ["tcp/192.0.2.1:7600"]
# Its capacity on the wire, including headers: a number above 0 and bit, kbit, mbit, gbit, B/s, kB/s, MB/s or
# GB/s. "auto" and "auto 1mbit..50mbit" measure it. Default: none; the link then has no limit and supports no
# contracts.
#capacity = "2mbit"
# The medium that it shares with other links of this node and of others, such as a radio channel: all of them together
# send no more than its capacity. Give the same name and capacity on all nodes. Default: none.
#medium = "field-radio"
# The capacity of the medium. Default: capacity.
#medium_capacity = "2mbit"
# The longest time for which a frame waits for the medium, from 0ms to 1s. Default: 0ms.
#medium_access = "16ms"
# Its queue space for contracts, in bytes on the wire: contracts that could queue more together are refused.
# From 1B to 1000000000000B. Default: 256MB.
#buffer = "16MB"
# The discipline that schedules it: "vds" (the default), "dwcs", "edf", "static-priority", "fifo" …;
# docs/reference/cli.md lists all.
#policy = "vds"
# The files with which this end proves its identity, in PEM format: its certificate, the key of that, and the
# authority of the network. All three or none. Default: none; quic and tls endpoints need them
# (paceline trust).
#tls_cert = "/etc/paceline/node.pem"
#tls_key = "/etc/paceline/node.key"
#tls_ca = "/etc/paceline/ca.pem"
# The HTTP proxy through which it connects to tcp and tls endpoints. Default: none.
#proxy = "http://proxy.example:3128"
# The multicast groups ADDRESS/PREFIX:PORT of its network segment, on all nodes of the segment: a stream that several
# neighbours receive in the same form is sent once. /20 to /31. It needs quic endpoints and a capacity, that of the
# segment. Default: none.
#multicast = "239.77.0.0/24:7400"
# Delivers everything in order over quic, although a lost packet then delays all that follows. true or false.
# Default: false. Links without a capacity, and those over tls and tcp, always deliver in order.
#ordered = false
# Allows listening beyond this host without TLS. true or false. Default: false.
#insecure = false

# A class of the link above. Classes share the link, and each stream belongs to the first class that matches.
# Other streams belong to the class "default". At most 64. Default: none; then all streams share one class.
#[[link.class]]
# Text of 1 to 64 bytes, unique on the link. No default.
#name = "contracts"
# The streams of the class: to these next hops, from these nodes, on these tags or patterns, and with
# (false) or without (true) a contract. A stream must match all given keys. Default: any.
#peers = ["operator"]
#nodes = ["robot"]
#tags = ["robot/**"]
#best_effort = false
# Its guarantee, its share compared with its siblings while all are busy, and its limit: a rate such as
# "2mbit", {m1, d, m2} (rate m1 for the time d, then m2) or {burst, within, rate}.
# Default: no guarantee, a share, no limit.
#real_time = { burst = "1500B", within = "20ms", rate = "400kbit" }
#link_share = "1mbit"
#upper_limit = "2mbit"
# The discipline that schedules its streams. Default: the policy of the link.
#discipline = "vds"
#[[link.class]]
#name = "others"
# The class above it, which then has no streams itself. Default: the link.
#[[link.class]]
#name = "peers"
#parent = "others"
# Instead of link_share: percent of the bandwidth of the class above, 1 to 100. Default: an equal share of
# the rest.
#share = 100
# Gives each next hop its own class below this one. true or false. Default: false.
#per_peer = true
# The limit of its streams (docs/concepts/policing.md); ends with else drop or else delay. Default: no limit.
#police = "leaky:20kB,400kbit + leaky:100p,500p/s else drop"

# A pull buffer: keeps samples that match the pattern, for later pulls. At most 64.
#[[buffer]]
# A tag, or a pattern: * matches one chunk, ** any number. No default.
#pattern = "robot/**"
# The largest number of samples, from 1 to 1000000. Default: no limit, or 1000 if neither bytes nor age is
# given.
#samples = 300
# The largest sum of payloads: a number and B, kB, MB or GB, from 1B to 4294967296B. Default: 268435456B.
#bytes = "64MB"
# The largest age of a sample: a number and ms, s, min or h, from 1ms to 24h. Default: 24h.
#age = "10s"

# What the node publishes itself, at most 64: one of rtsp, rtp, file or test_card on a tag. The keys are options of
# paceline pub, and have its values. A source that has ended, such as a file, starts again when the file is reloaded.
#[[source]]
# The tag of the pictures, or of the other samples. No default.
#tag = "robot/camera"
# The address of a camera, without a password. No default.
#rtsp = "rtsp://192.168.1.20/stream"
# A file with USER:PASSWORD for the camera. An absolute path. Default: none.
#rtsp_login = "/etc/paceline/camera.txt"
# Receives from the camera over UDP instead of TCP. true or false. Default: false.
#rtsp_udp = true
# The tag of the camera's sound. Default: the sound is left out.
#sound = "robot/microphone"
# The samples per second. Default: as the source states.
#hz = 30
# The delay bound and the loss tolerance for subscribers that request none. Default: none.
#within = "200ms"
#loss = "1/10"
# The samples to buffer for pulls: their number, or limits such as "samples=300,bytes=64MB,age=10s". Default: none.
#history = 300
#[[source]]
#tag = "robot/rear"
# A session description (SDP) of plain RTP. An absolute path. No default.
#rtp = "/etc/paceline/rear.sdp"
#[[source]]
#tag = "robot/film"
# A file, a FIFO or a unix socket by its absolute path, or tcp/HOST:PORT. No default.
#file = "/var/lib/paceline/film.264"
# Starts again at the end of the file. true or false. Default: false.
#loop = true
# Sends late samples instead of dropping them. true or false. Default: false.
#late = true
#[[source]]
#tag = "robot/card"
# Pictures that show their number and time: WxH@HZ. No default.
#test_card = "320x240@10"

# A Zenoh router of the node for plain Zenoh and ROS 2 programs, separate from the links. It runs if the file
# has this table or one of the rules below.
#[plain]
# The endpoints on which it listens, and the Zenoh routers to which it connects. Each is a list of 1 to 64
# endpoints. Default: ["tcp/localhost:7447", "unixsock-stream/RUNTIME_DIR/plain.sock"], and none.
#listen = ["tcp/localhost:7447"]
#connect = ["tcp/localhost:7448"]
# Allows listening beyond this host without TLS. true or false. Default: false.
#insecure = false

# The node publishes the samples that plain programs put on these keys. At most 64.
#[[import]]
# A key expression of Zenoh: * matches one chunk, ** any number. No default.
#key = "robot/**"
# The tag for a key: {key} is the key, {1} the match of its first wildcard. Default: "{key}".
#tag = "{key}"
# Carries the liveliness tokens with these keys instead of samples. The tag then has no wildcard, such as
# "robot/@tokens". true or false. Default: false.
#tokens = false
# The largest number of keys, from 1 to 4096. Default: 256.
#keys = 256
# The rate limit of each key in samples per second, from 0.001 to 1000000. Samples above it are dropped (policed).
# Default: no limit.
#max_hz = 100
# The largest payload; larger ones are dropped (too_large). A number and B, kB, MB or GB, from 1B to 67MB.
# Default: 67MB.
#max_bytes = "100kB"
# The declared rate of each key in samples per second, from 0.001 to 1000000. It sets the distance of deadlines.
# Default: none; the requested rate then sets the distance.
#hz = 30
# The kind of the samples: "data", "state", "picture", "audio" or "video". Default: derived from the encoding.
#kind = "picture"
# The media type, instead of the type in each sample. Text of 1 to 255 bytes. Default: the type in each sample.
#encoding = "image/jpeg"
# For subscribers with a delay bound and no loss tolerance: of Y samples at most X may be late or lost.
# Default: "0/1".
#loss = "1/10"

# A subscription of the node. The node puts its samples on keys for plain programs. At most 64.
#[[export]]
# A tag, or a pattern: * matches one chunk, ** any number. No default.
#tag = "operator/**"
# The key for a tag: {tag} is the tag, {1} the match of its first wildcard. Default: "{tag}".
#key = "{1}"
# Declares the liveliness tokens received on these tags, under their own keys. true or false. Default: false.
#tokens = false
# Subscribes even if no plain program subscribes. true or false. Default: false.
#always = false
# Answers queries for the keys from the pull buffers of the tags. true or false. Default: false.
#queries = false
# The largest rate in samples per second, from 0.001 to 1000000, or every = N for one in N. Default: every sample.
#max_hz = 10
# The size of pictures; the sample rate and channels of sound. Default: unchanged.
#size = "320x240"
#audio = "8000x1"
# The delay bound: a number and ms, s, min or h, from 1ms to 24h. Default: none.
#within = "200ms"
# Of Y samples at most X may be late or lost. Default: the publisher's loss tolerance.
#loss = "1/10"
# The age limit of commands, from 1us to 1h, and the safe action when they stop: hold puts nothing more, zero puts
# one sample of zeros. Default: none.
#fresh = "100ms:zero"
# The node that reduces rate and size: "publisher", "subscriber", "node:NAME" or "auto". Default: "publisher".
#proxy = "publisher"
# Retransmission of samples lost on QUIC links: "none", "selective" or "go-back-n". Default: "selective".
#retransmit = "selective"
#[[export]]
#tag = "lab/**"
#every = 3

# Queries for these keys, such as services of ROS 2, between programs of different nodes. Both nodes need the same
# rule. At most 64.
#[[query]]
# A key expression of Zenoh: * matches one chunk, ** any number. No default.
#key = "robot/**"
# The tag prefix of queries between nodes. Text of at most 200 bytes without wildcards. Default: "queries".
#tag = "queries"
# Carries queries from programs here to programs elsewhere, and the reverse. true or false. Default: true.
#asks = true
#answers = true
# The time limit of a query: a number and ms, s, min or h, from 1ms to 24h. Default: 10s.
#timeout = "10s"
# The size limit of a query and of an answer; larger ones are refused. A number and B, kB, MB or GB, from 1kB to 67MB.
# Default: 1MB.
#max_bytes = "1MB"
# The limit of concurrent queries from programs here, and from each other node; more are refused. A whole number from
# 1 to 4096. Default: 64.
#at_once = 64
# The delay bound of each query and each answer: a number and ms, s, min or h, from 1ms to 24h. It covers sizes up
# to max_bytes. Default: none.
#within = "100ms"
# The rate of queries, or answers, per second that the delay bound covers, from 0.001 to 1000000. Default: none.
#hz = 10
"#;
