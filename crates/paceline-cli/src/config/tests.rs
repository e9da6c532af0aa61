use super::class::CLASS_KEYS;
use super::clock::CLOCK_KEYS;
use super::plain::{EXPORT_KEYS, IMPORT_KEYS, PLAIN_KEYS};
use super::query::QUERY_KEYS;
use super::read::{BUFFER_KEYS, KEYS, LINK_KEYS, read};
use super::source::SOURCE_KEYS;
use super::*;
use paceline::class::Policy;
use paceline_fuzz::mutate::{Xorshift, mutate};

fn wrong(text: &str) -> String {
    read(text, "p.toml").expect_err(text)
}

/// A file, the line with the mistake, and the texts that the message must contain.
type Case = (&'static str, usize, &'static [&'static str]);

const CLASS_WITHOUT_NAME: &str =
    "[[link]]\nlisten = [\"tcp/[::1]:1\"]\n[[link.class]]\nshare = 5\n";

const CASES: &[Case] = &[
    // The file itself.
    ("name = ", 1, &["not TOML"]),
    ("name = \"a\"\nwhat is this\n", 2, &["not TOML"]),
    ("name = \"a\"\nname = \"b\"\n", 2, &["name is given twice: keep one"]),
    ("\nnmae = \"a\"\n", 2, &["nmae is not known", "did you mean name?", "runtime_dir"]),
    ("colour = 1\n", 1, &["colour is not known: the keys here are name, runtime_dir"]),
    // Text.
    ("name = 5\n", 1, &["name = 5: must be text of 1 to 255 bytes", "leave it out for the host"]),
    ("name = \"\"\n", 1, &["name = \"\": must be text of 1 to 255"]),
    ("name = \"a\\nb\"\n", 1, &["control characters"]),
    ("name = [\"a\"]\n", 1, &["name = [\"a\"]"]),
    ("runtime_dir = 5\n", 1, &["runtime_dir = 5: must be an absolute path of 2 to 97 bytes"]),
    ("runtime_dir = \"\"\n", 1, &["runtime_dir = \"\"", "leave it out for $XDG_RUNTIME_DIR"]),
    ("runtime_dir = \"run/here\"\n", 1, &["must be an absolute path"]),
    ("log = 5\n", 1, &["log = 5: must be", "off, error, warn, info, debug or trace"]),
    ("log = \"wran\"\n", 1, &["log = \"wran\"", "off, error, warn, info, debug or trace"]),
    ("log = \"\"\n", 1, &["log = \"\": must be"]),
    ("log = \"paceline=loud\"\n", 1, &["log = \"paceline=loud\""]),
    // Booleans.
    ("isolated = 1\n", 1, &["isolated = 1: must be true or false"]),
    ("isolated = \"yes\"\n", 1, &["isolated = \"yes\": must be true or false; false joins"]),
    // Percent.
    (
        "processor_percent = -1\n",
        1,
        &["processor_percent = -1: must be a whole number from 0 to 6400"],
    ),
    ("processor_percent = 6401\n", 1, &["100 is one processor, 0 charges nothing"]),
    ("processor_percent = \"50%\"\n", 1, &["leave it out for 50"]),
    // Sizes.
    (
        "host_buffer = \"0B\"\n",
        1,
        &["host_buffer = \"0B\": must be from 1B", "leave it out for 1GB"],
    ),
    (
        "neighbour_memory = \"1MB\"\n",
        1,
        &["neighbour_memory = \"1MB\": must be from 32MB", "leave it out for 134MB"],
    ),
    // Links.
    ("link = 5\n", 1, &["link must be a list of tables: write [[link]]"]),
    ("[link]\nname = \"a\"\n", 1, &["link must be a list of tables: write [[link]]"]),
    ("link = [1]\n", 1, &["write [[link]]"]),
    (
        "[[link]]\nlisen = [\"tcp/[::1]:1\"]\nconnect = [\"tcp/[::1]:1\"]\n",
        2,
        &["link 1: lisen is not known: did you mean listen?"],
    ),
    (
        "[[link]]\nname = \"a\"\n",
        1,
        &["link 1: no endpoint: give listen = [\"tcp/127.0.0.1:7600\"]"],
    ),
    (
        "[[link]]\nlisten = \"tcp/[::1]:1\"\n",
        2,
        &["link 1: listen = \"tcp/[::1]:1\": must be a list of 1 to 64 endpoints"],
    ),
    ("[[link]]\nlisten = []\n", 2, &["listen = []: must be a list of 1 to 64"]),
    (
        "[[link]]\nconnect = [\n  \"tcp/[::1]:1\",\n  \"here\",\n]\n",
        4,
        &["link 1: connect has \"here\": must be PROTOCOL/ADDRESS with protocol quic, tls"],
    ),
    ("[[link]]\nconnect = [7600]\n", 2, &["connect has 7600: must be a list of 1 to 64 endpoints"]),
    ("[[link]]\nlisten = [\"ws/[::1]:1\"]\n", 2, &["listen has \"ws/[::1]:1\": must be PROTOCOL"]),
    (
        "[[link]]\nlisten = [\"tcp/[::1]:1\"]\nname = 1\n",
        3,
        &["name = 1", "leave it out for link1"],
    ),
    (
        "[[link]]\nlisten = [\"tcp/[::1]:1\"]\ncapacity = 2\n",
        3,
        &[
            "link 1: capacity = 2: needs a unit: 2mbit, 2000kbit (allowed: bit, kbit, mbit, gbit, B/s,",
        ],
    ),
    (
        "[[source]]\nrtsp = \"rtsp://h/s\"\n",
        1,
        &["source 1: tag is missing: it must be text, such as"],
    ),
    (
        "[[source]]\ntag = \"a\"\nrtsp = \"rtsp://ada:secret@h/s\"\n",
        3,
        &["source 1: rtsp: the address contains a login; write USER:PASSWORD into a file"],
    ),
    ("[[source]]\ntag = \"a\"\n", 1, &["source 1: 0 of rtsp, rtp, file and test_card: give one"]),
    (
        "[[source]]\ntag = \"a\"\nfile = \"film.264\"\n",
        3,
        &["source 1: file = \"film.264\": must be an absolute path"],
    ),
    (
        "[[source]]\ntag = \"a\"\nfile = \"/film.264\"\nloop = 1\n",
        4,
        &["source 1: loop = 1: must be true or false"],
    ),
    (
        "[[link]]\nlisten = [\"tcp/[::1]:1\"]\ncapacity = \"0mbit\"\n",
        3,
        &["capacity = \"0mbit\": capacity is 0 bit/s: must be at least 8 bit/s"],
    ),
    (
        "[[link]]\nlisten = [\"tcp/[::1]:1\"]\ncapacity = \"-2mbit\"\n",
        3,
        &["capacity = \"-2mbit\": must be a number with a unit, such as 2mbit (allowed: bit, kbit"],
    ),
    (
        "[[link]]\nlisten = [\"tcp/[::1]:1\"]\ncapacity = \"99999999999gbit\"\n",
        3,
        &["capacity = \"99999999999gbit\": must be a number with a unit"],
    ),
    (
        "[[link]]\nlisten = [\"tcp/[::1]:1\"]\nbuffer = \"0B\"\n",
        3,
        &["buffer = \"0B\": must be from 1B to 1000000000000B", "leave it out for 256MB"],
    ),
    (
        "[[link]]\nlisten = [\"tcp/[::1]:1\"]\npolicy = \"lottery\"\n",
        3,
        &["policy = \"lottery\": must be the name of a discipline"],
    ),
    (
        "[[link]]\nlisten = [\"tcp/[::1]:1\"]\npolicy = 1\n",
        3,
        &["policy = 1: must be the name of a discipline"],
    ),
    ("[[link]]\nlisten = [\"tcp/[::1]:1\"]\ninsecure = 1\n", 3, &["insecure = 1: must be true or"]),
    (
        "[[link]]\nname = \"a\"\nlisten = [\"tcp/[::1]:1\"]\n[[link]]\nname = \"a\"\n\
         listen = [\"tcp/[::1]:2\"]\n",
        5,
        &["two links are named 'a'; give each link a unique name"],
    ),
    (
        "[[link]]\nname = \"link2\"\nlisten = [\"tcp/[::1]:1\"]\n[[link]]\n\
         listen = [\"tcp/[::1]:2\"]\n",
        4,
        &["two links are named 'link2'"],
    ),
    // Plain programs.
    ("[[import]]\nkey = \"a\"\ntokens = 1\n", 3, &["tokens = 1: must be true or false"]),
    (
        "[[import]]\nkey = \"@ros2_lv/**\"\ntokens = true\n",
        3,
        &["import 1: tokens needs a tag without wildcards, such as tag = \"robot/@tokens\""],
    ),
    (
        "[[import]]\nkey = \"@a/**\"\ntag = \"x\"\ntokens = true\n[[export]]\ntag = \"x\"\ntokens = true\n",
        5,
        &["import 1 (key '@a/**') and export 1 (tag 'x') are a loop"],
    ),
    ("[[export]]\ntag = \"a\"\ntokens = 1\n", 3, &["tokens = 1: must be true or false"]),
    ("plain = 5\n", 1, &["plain must be a table: write [plain]"]),
    ("[plain]\nlistn = []\n", 2, &["plain: listn is not known: did you mean listen?"]),
    ("[plain]\nlisten = []\n", 2, &["plain: listen = []: must be a list of 1 to 64 endpoints"]),
    (
        "[plain]\nlisten = [\"here\"]\n",
        2,
        &["plain: listen has \"here\": must be PROTOCOL/ADDRESS"],
    ),
    ("[plain]\nconnect = 7447\n", 2, &["plain: connect = 7447: must be a list"]),
    ("[plain]\ninsecure = 1\n", 2, &["plain: insecure = 1: must be true or false"]),
    (
        "[plain]\nlisten = [\"tcp/0.0.0.0:7447\"]\n",
        2,
        &[
            "[plain]: listening on tcp/0.0.0.0:7447",
            "listening on tcp/0.0.0.0:7447 accepts connections from any host",
            "insecure",
        ],
    ),
    ("import = 5\n", 1, &["import must be a list of tables: write [[import]]"]),
    (
        "[[import]]\ntag = \"a\"\n",
        1,
        &["import 1: key is missing: it must be text: a key expression"],
    ),
    ("[[import]]\nkey = 5\n", 2, &["import 1: key = 5: must be text: a key expression of Zenoh"]),
    (
        "[[import]]\nkey = \"/a\"\n",
        2,
        &["import 1: key = \"/a\": '/a' is not a key expression of Zenoh"],
    ),
    ("[[import]]\nkey = \"a/**/b/**\"\n", 2, &["import 1: key", "more than one **"]),
    ("[[import]]\nkey = \"a\"\ntag = 5\n", 3, &["tag = 5: must be text with {key} for the key"]),
    ("[[import]]\nkey = \"a\"\ntag = \"{tag}\"\n", 3, &["{tag} is not known: write {key}"]),
    ("[[import]]\nkey = \"a/*\"\ntag = \"{2}\"\n", 3, &["names {2}, but a/* has 1 wildcards"]),
    ("[[import]]\nkey = \"a/*\"\ntag = \"b c/{1}\"\n", 3, &["tag = \"b c/{1}\"", "contains ' '"]),
    (
        "[[import]]\nkey = \"a\"\nkeys = 0\n",
        3,
        &["keys = 0: must be a whole number from 1 to 4096"],
    ),
    (
        "[[import]]\nkey = \"a\"\nmax_hz = 0\n",
        3,
        &["max_hz = 0: must be a number from 0.001 to 1000000, the rate limit of each key"],
    ),
    (
        "[[import]]\nkey = \"a\"\nmax_bytes = 5\n",
        3,
        &["max_bytes = 5: needs a unit: 5B, 0.005kB (allowed: B, kB, MB, GB, TB)"],
    ),
    (
        "[[import]]\nkey = \"a\"\nmax_bytes = \"1GB\"\n",
        3,
        &["max_bytes = \"1GB\"", "from 1B to 67MB"],
    ),
    ("[[import]]\nkey = \"a\"\nhz = 0\n", 3, &["hz = 0: must be a number from 0.001 to 1000000"]),
    ("[[import]]\nkey = \"a\"\nhz = \"30\"\n", 3, &["hz = \"30\": must be a number"]),
    (
        "[[import]]\nkey = \"a\"\nkind = \"film\"\n",
        3,
        &["kind = \"film\": must be \"data\", \"state\""],
    ),
    (
        "[[import]]\nkey = \"a\"\nencoding = \"\"\n",
        3,
        &["encoding = \"\": must be text of 1 to 255"],
    ),
    ("[[import]]\nkey = \"a\"\nloss = \"2\"\n", 3, &["loss = \"2\": must be text \"X/Y\""]),
    ("[[import]]\nkey = \"a\"\nrate = 3\n", 3, &["import 1: rate is not known: "]),
    (
        "[[export]]\nkey = \"a\"\n",
        1,
        &["export 1: tag is missing: it must be text: a tag or a pattern"],
    ),
    ("[[export]]\ntag = \"a b\"\n", 2, &["export 1: tag = \"a b\"", "contains ' '"]),
    ("[[export]]\ntag = \"a\"\nkey = \"{key}\"\n", 3, &["{key} is not known: write {tag}"]),
    ("[[export]]\ntag = \"a\"\nalways = 1\n", 3, &["always = 1: must be true or false"]),
    ("[[export]]\ntag = \"a\"\nqueries = 1\n", 3, &["queries = 1: must be true or false"]),
    (
        "[[export]]\ntag = \"a/*\"\nkey = \"b\"\nqueries = true\n",
        4,
        &["export 1: queries needs a key that determines the tag: name each wildcard of 'a/*'"],
    ),
    ("[[export]]\ntag = \"a\"\nevery = 0\n", 3, &["every = 0: must be a whole number from 1"]),
    ("[[export]]\ntag = \"a\"\nmax_hz = -1\n", 3, &["max_hz = -1: must be a number from 0.001"]),
    ("[[export]]\ntag = \"a\"\nmax_hz = nan\n", 3, &["max_hz = nan: must be a number from 0.001"]),
    ("[[export]]\ntag = \"a\"\nsize = \"big\"\n", 3, &["size = \"big\": ", "such as \"320x240\""]),
    ("[[export]]\ntag = \"a\"\naudio = \"8000\"\n", 3, &["audio = \"8000\": has no x"]),
    (
        "[[export]]\ntag = \"a\"\nwithin = 200\n",
        3,
        &["within = 200: needs a unit: 200ms, 0.2s (allowed: ns, us, ms, s, min, h)"],
    ),
    (
        "[[export]]\ntag = \"a\"\nfresh = \"100ms:brake\"\n",
        3,
        &["fresh = \"100ms:brake\": safe action 'brake'", "such as \"100ms:zero\""],
    ),
    (
        "[[export]]\ntag = \"a\"\nwithin = \"0ms\"\n",
        3,
        &["within = \"0ms\": must be from 1ms to 24h", "such as \"200ms\""],
    ),
    ("[[export]]\ntag = \"a\"\nloss = \"3/2\"\n", 3, &["loss = \"3/2\": must be text \"X/Y\""]),
    (
        "[[export]]\ntag = \"a\"\nproxy = \"moon\"\n",
        3,
        &["proxy = \"moon\": must be \"publisher\""],
    ),
    ("[[export]]\ntag = \"a\"\nretransmit = 1\n", 3, &["retransmit = 1: must be \"none\""]),
    (
        "[[query]]\ntag = \"a\"\n",
        1,
        &["query 1: key is missing: it must be text: a key expression"],
    ),
    ("[[query]]\nkey = \"a//b\"\n", 2, &["query 1: key = \"a//b\"", "is not a key expression"]),
    ("[[query]]\nkey = \"a\"\ntag = \"a/*\"\n", 3, &["tag = \"a/*\": must be text of at most 200"]),
    ("[[query]]\nkey = \"a\"\ntag = \"@a\"\n", 3, &["tag = \"@a\": must be text of at most 200"]),
    ("[[query]]\nkey = \"a\"\nasks = 1\n", 3, &["asks = 1: must be true or false"]),
    ("[[query]]\nkey = \"a\"\nanswers = 1\n", 3, &["answers = 1: must be true or false"]),
    (
        "[[query]]\nkey = \"a\"\nasks = false\nanswers = false\n",
        4,
        &["query 1: asks and answers are both false, so the rule carries nothing"],
    ),
    ("[[query]]\nkey = \"a\"\ntimeout = \"0s\"\n", 3, &["timeout = \"0s\": ", "from 1ms to 24h"]),
    ("[[query]]\nkey = \"a\"\nmax_bytes = \"9B\"\n", 3, &["max_bytes = \"9B\": ", "1kB to 67MB"]),
    ("[[query]]\nkey = \"a\"\nat_once = 0\n", 3, &["at_once = 0: must be a whole number from 1"]),
    ("[[query]]\nkey = \"a\"\nwithin = 5\n", 3, &["within = 5: needs a unit: 5ms, 0.005s"]),
    ("[[query]]\nkey = \"a\"\nhz = 0\n", 3, &["hz = 0: must be a number from 0.001"]),
    ("[[query]]\nkey = \"a\"\nkeys = 0\n", 3, &["query 1: keys is not known: "]),
    (
        "[[query]]\nkey = \"a/**\"\n[[query]]\nkey = \"b\"\n",
        3,
        &["queries 1 (key 'a/**') and 2 (key 'b') have the same tag 'queries'"],
    ),
    (
        "[[query]]\nkey = \"a/**\"\n[[query]]\nkey = \"a/b\"\ntag = \"other\"\n",
        3,
        &["queries 1 (key 'a/**') and 2 (key 'a/b') have keys in common"],
    ),
    (
        "[[import]]\nkey = \"a/**\"\n[[import]]\nkey = \"a/b\"\n",
        3,
        &["imports 1 (key 'a/**') and 2 (key 'a/b') map the same keys to the same tags"],
    ),
    (
        "[[export]]\ntag = \"a/**\"\n[[export]]\ntag = \"a/b\"\n",
        3,
        &["exports 1 (tag 'a/**') and 2 (tag 'a/b') put the same tags on the same keys"],
    ),
    (
        "[[import]]\nkey = \"a/**\"\n[[export]]\ntag = \"**\"\n",
        3,
        &[
            "import 1 (key 'a/**') and export 1 (tag '**') are a loop",
            "use separate tags for the import",
        ],
    ),
    // Classes.
    (
        CLASS_WITHOUT_NAME,
        3,
        &["link 1: class 1: name is missing: it must be text of 1 to 64 bytes"],
    ),
    (
        "[[link]]\nlisten = [\"tcp/[::1]:1\"]\n[[link.class]]\nname = \"a\"\nshare = 0\n",
        5,
        &["link 1: class 1: share = 0: must be a whole number from 1 to 100, percent"],
    ),
    (
        "[[link]]\nlisten = [\"tcp/[::1]:1\"]\n[[link.class]]\nname = \"a\"\nshre = 5\n",
        5,
        &["link 1: class 1: shre is not known: did you mean share?"],
    ),
    (
        "[[link]]\nlisten = [\"tcp/[::1]:1\"]\n[[link.class]]\nname = \"a\"\nreal_time = \"fast\"\n",
        5,
        &[
            "real_time = \"fast\": the curve is \"fast\": must be a number with a unit, such as 2mbit (allowed: bit",
        ],
    ),
    (
        "[[link]]\nlisten = [\"tcp/[::1]:1\"]\n[[link.class]]\nname = \"a\"\nreal_time = \"64bit\"\n",
        5,
        &[
            "link 1: class 'a': real_time: a guarantee is a part of a capacity, and the link has none",
        ],
    ),
    (
        "[[link]]\nlisten = [\"tcp/[::1]:1\"]\n[[link.class]]\nname = \"a\"\nlink_share = {m3 = 1}\n",
        5,
        &["unknown field \"m3\": the fields are m1, d and m2"],
    ),
    (
        "[[link]]\nlisten = [\"tcp/[::1]:1\"]\n[[link.class]]\nname = \"a\"\nparent = \"b\"\n",
        5,
        &["class 'a': parent: class \"a\" has the parent \"b\", which is not listed; add it"],
    ),
    (
        "[[link]]\nlisten = [\"tcp/[::1]:1\"]\n[[link.class]]\nname = \"a\"\nshare = 60\n\
         [[link.class]]\nname = \"b\"\nshare = 50\n",
        8,
        &["class 'b': share: 50 %: with the earlier shares 110 % of the class above"],
    ),
    (
        "[[link]]\nlisten = [\"tcp/[::1]:1\"]\n[[link.class]]\nname = \"a\"\n[[link.class]]\nname = \"a\"\n",
        6,
        &["class 'a': name: class \"a\" is listed twice; give each class a unique name"],
    ),
    (
        "[[link]]\nlisten = [\"tcp/[::1]:1\"]\n[[link.class]]\nname = \"a\"\npolice = \"leaky\"\n",
        5,
        &["class 1: police = \"leaky\": "],
    ),
    (
        "[[link]]\nlisten = [\"tcp/[::1]:1\"]\n[[link.class]]\nname = \"a\"\ntags = [\"a//b\"]\n",
        5,
        &["class 1: tags has \"a//b\": ", "empty chunk"],
    ),
    (
        "[[link]]\nlisten = [\"tcp/[::1]:1\"]\n[[link.class]]\nname = \"a\"\ndiscipline = \"lottery\"\n",
        5,
        &["discipline = \"lottery\": must be the name of a discipline"],
    ),
    // Buffers.
    ("buffer = {}\n", 1, &["buffer must be a list of tables: write [[buffer]]"]),
    (
        "[[buffer]]\nsamples = 5\n",
        1,
        &["buffer 1: pattern is missing: it must be text", "robot/**"],
    ),
    ("[[buffer]]\npatern = \"a\"\npattern = \"b\"\n", 2, &["did you mean pattern?"]),
    ("[[buffer]]\npattern = 5\n", 2, &["buffer 1: pattern = 5: must be text: a tag or a pattern"]),
    ("[[buffer]]\npattern = \"a//b\"\n", 2, &["pattern = \"a//b\": ", "empty chunk"]),
    ("[[buffer]]\npattern = \"\"\n", 2, &["pattern = \"\": "]),
    (
        "[[buffer]]\npattern = \"a\"\nsamples = 0\n",
        3,
        &[
            "samples = 0: must be a whole number from 1 to 1000000; leave it out for no limit except",
        ],
    ),
    ("[[buffer]]\npattern = \"a\"\nsamples = -1\n", 3, &["samples = -1: must be a whole number"]),
    ("[[buffer]]\npattern = \"a\"\nsamples = 1.5\n", 3, &["samples = 1.5: must be a whole"]),
    ("[[buffer]]\npattern = \"a\"\nsamples = \"5\"\n", 3, &["samples = \"5\": must be a whole"]),
    ("[[buffer]]\npattern = \"a\"\nsamples = 1000001\n", 3, &["from 1 to 1000000"]),
    (
        "[[buffer]]\npattern = \"a\"\nbytes = \"0B\"\n",
        3,
        &["bytes = \"0B\": must be", "to 4294967296B"],
    ),
    ("[[buffer]]\npattern = \"a\"\nbytes = -5\n", 3, &["bytes = -5: must be a number with a unit"]),
    (
        "[[buffer]]\npattern = \"a\"\nbytes = \"4294967297B\"\n",
        3,
        &["bytes = \"4294967297B\": must be"],
    ),
    (
        "[[buffer]]\npattern = \"a\"\nbytes = 99999999999999999999\n",
        3,
        &["must be a number with a unit"],
    ),
    (
        "[[buffer]]\npattern = \"a\"\nbytes = 1024\n",
        3,
        &["bytes = 1024: needs a unit: 1024B, 1.024kB (allowed: B, kB, MB, GB, TB)"],
    ),
    (
        "[[export]]\ntag = \"a\"\nwithin_ms = 200\n",
        3,
        &["within_ms is not known: write within = \"200ms\", with a unit"],
    ),
    ("[[buffer]]\npattern = \"a\"\nbytes = true\n", 3, &["bytes = true: must be from 1B to"]),
    (
        "[[buffer]]\npattern = \"a\"\nage = 10\n",
        3,
        &["age = 10: needs a unit: 10ms, 0.01s (allowed: ns, us, ms, s, min, h)"],
    ),
    ("[[buffer]]\npattern = \"a\"\nage = \"0s\"\n", 3, &["age = \"0s\"", "from 1ms to 24h"]),
    (
        "[[buffer]]\npattern = \"a\"\nage = \"-1s\"\n",
        3,
        &["age = \"-1s\"", "must be a number with a unit"],
    ),
    ("[[buffer]]\npattern = \"a\"\nage = \"25h\"\n", 3, &["age = \"25h\""]),
    (
        "[[buffer]]\npattern = \"a\"\n[[buffer]]\npattern = \"a\"\n",
        4,
        &["two buffers have the pattern 'a': keep one"],
    ),
];

#[test]
fn errors_name_line_field_value_range_and_fix() {
    for (text, line, parts) in CASES {
        let error = wrong(text);
        assert!(error.starts_with(&format!("p.toml:{line}: ")), "{text}: {error}");
        for part in *parts {
            assert!(error.contains(part), "{text}: '{part}' is not in: {error}");
        }
        assert_eq!(error.lines().count(), 1, "{text}: {error}");
    }
}

#[test]
fn values_that_are_too_long_are_cut_in_the_message() {
    let long = "x".repeat(300);
    let error = wrong(&format!("name = \"{long}\"\n"));
    assert!(error.contains("must be text of 1 to 255 bytes") && error.contains("x …: "), "{error}");
    assert!(error.len() < 300, "{error}");
    let error = wrong(&format!("runtime_dir = \"/{long}\"\n"));
    assert!(error.contains("of 2 to 97 bytes"), "{error}");
    let error = wrong("name = \"\"\"a\nb\"\"\"\n");
    assert!(error.contains("name = \"\"\"a …: "), "{error}");
    let list = "\"tcp/[::1]:1\",".repeat(65);
    let error = wrong(&format!("[[link]]\nlisten = [{list}]\n"));
    assert!(error.contains("must be a list of 1 to 64 endpoints"), "{error}");
    let buffers: String = (0..65).map(|n| format!("[[buffer]]\npattern = \"a/{n}\"\n")).collect();
    let error = wrong(&buffers);
    assert!(error.starts_with("p.toml:129: 65 buffers, a node has at most 64"), "{error}");
    let link = |n| format!("[[link]]\nlisten = [\"tcp/[::1]:{n}\"]\n");
    let error = wrong(&(1..=17).map(link).collect::<String>());
    assert!(error.starts_with("p.toml:33: 17 links, a node has at most 16"), "{error}");
}

#[test]
fn all_errors_are_reported_together_in_order() {
    let error = wrong("name = 1\nisolated = 2\n[[link]]\ncapacity = 3\n");
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 4, "{error}");
    for (line, start) in lines.iter().zip(["p.toml:1: ", "p.toml:2: ", "p.toml:3: ", "p.toml:4: "])
    {
        assert!(line.starts_with(start), "{error}");
    }
}

#[test]
fn a_valid_file_is_read() {
    let config = read(
        "name = \"gate\"\nruntime_dir = \"/run/x\"\nisolated = true\nlog = \"info,zenoh=warn\"\n\
         [[link]]\nname = \"radio\"\nlisten = [\"tcp/[::1]:1\"]\nconnect = [\"quic/h:2\", \"tls/h:3\"]\n\
         capacity = \"1.5mbit\"\nbuffer = \"16MB\"\npolicy = \"dwcs\"\ninsecure = true\n\
         [[link]]\nconnect = [\"tcp/h:4\"]\n\
         [[buffer]]\npattern = \"a/**\"\nsamples = 0x10\nbytes = \"1kB\"\nage = \"90s\"\n\
         [[buffer]]\npattern = \"b\"\n",
        "p.toml",
    )
    .unwrap();
    assert_eq!(config.name.as_deref(), Some("gate"));
    assert_eq!(config.runtime_dir, Some(PathBuf::from("/run/x")));
    assert!(config.isolated);
    assert_eq!(config.log.as_deref(), Some("info,zenoh=warn"));
    let [radio, second] = config.links.as_slice() else { panic!("{config:?}") };
    assert_eq!(
        (radio.name(1).as_str(), radio.policy, radio.insecure),
        ("radio", Policy::DWCS, true)
    );
    assert_eq!(radio.capacity.unwrap().first().bits_per_s(), 1_500_000);
    assert_eq!((radio.buffer, second.buffer), (Some(16_000_000), None));
    assert_eq!(radio.connect, ["quic/h:2", "tls/h:3"]);
    assert_eq!((second.name(2).as_str(), second.policy), ("link2", Policy::Vds));
    let [all, one] = config.buffers.as_slice() else { panic!("{config:?}") };
    assert_eq!(Ok(all), "a/**=samples=16,bytes=1000B,age=90s".parse().as_ref());
    assert_eq!(Ok(one), "b".parse().as_ref());
    assert_eq!(read("", "p.toml"), Ok(Config::default()));
}

#[test]
fn the_printed_configuration_is_valid_with_and_without_its_marks() {
    assert_eq!(read(TEMPLATE, "p.toml"), Ok(Config::default()));
    let bare = |line: &str| match line.strip_prefix('#') {
        Some(key) if !key.is_empty() && !key.starts_with(' ') => format!("{key}\n"),
        _ => format!("{line}\n"),
    };
    let all: String = TEMPLATE.lines().map(bare).collect();
    let config = read(&all, "p.toml").unwrap();
    assert_eq!((config.links.len(), config.buffers.len()), (1, 1));
    let table: toml::Table = all.parse().unwrap();
    let has = |table: &toml::Table, keys: &[&str]| {
        assert!(keys.iter().all(|key| table.contains_key(*key)) && table.len() == keys.len());
    };
    has(&table, &KEYS);
    has(table["link"][0].as_table().unwrap(), &LINK_KEYS);
    let classes = table["link"][0]["class"].as_array().unwrap();
    let keys = classes.iter().flat_map(|class| class.as_table().unwrap().keys());
    let keys: std::collections::BTreeSet<&str> = keys.map(String::as_str).collect();
    assert_eq!(keys, CLASS_KEYS.into());
    assert_eq!(config.links[0].classes.len(), 3);
    has(table["buffer"][0].as_table().unwrap(), &BUFFER_KEYS);
    let sources = table["source"].as_array().unwrap();
    let keys = sources.iter().flat_map(|source| source.as_table().unwrap().keys());
    let keys: std::collections::BTreeSet<&str> = keys.map(String::as_str).collect();
    assert_eq!(keys, SOURCE_KEYS.into());
    for source in &config.sources {
        let checked = crate::publish::ConfiguredSource::new(source);
        assert!(checked.is_ok(), "{source:?}: {:?}", checked.err());
    }
    has(table["clock"].as_table().unwrap(), &CLOCK_KEYS);
    has(table["plain"].as_table().unwrap(), &PLAIN_KEYS);
    has(table["import"][0].as_table().unwrap(), &IMPORT_KEYS);
    has(table["query"][0].as_table().unwrap(), &QUERY_KEYS);
    let exports = table["export"].as_array().unwrap();
    let keys = exports.iter().flat_map(|export| export.as_table().unwrap().keys());
    let keys: std::collections::BTreeSet<&str> = keys.map(String::as_str).collect();
    assert_eq!(keys, EXPORT_KEYS.into());
    assert_eq!((config.rules.imports.len(), config.rules.exports.len()), (1, 2));
}

#[test]
fn a_share_of_the_processor_may_be_none() {
    for (text, percent) in [("0", 0), ("75", 75), ("6400", 6_400)] {
        let config = read(&format!("processor_percent = {text}\n"), "p.toml").unwrap();
        assert_eq!(config.processor_percent, Some(percent));
    }
}

#[test]
fn files_are_searched_in_the_documented_places() {
    let dir = std::env::temp_dir().join(format!("plc-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("paceline")).unwrap();
    let user = dir.join(FILE);
    std::fs::write(&user, "").unwrap();
    let env = |pairs: &[(&str, &Path)]| {
        let pairs: Vec<_> = pairs.iter().map(|(n, p)| ((*n).to_owned(), p.to_path_buf())).collect();
        move |name: &str| pairs.iter().find(|(n, _)| n == name).map(|(_, path)| path.clone())
    };
    let named = Path::new("/no/such/file");
    assert_eq!(find_with(env(&[(VARIABLE, named), ("XDG_CONFIG_HOME", &dir)])), Some(named.into()));
    assert_eq!(find_with(env(&[("XDG_CONFIG_HOME", &dir), ("HOME", named)])), Some(user.clone()));
    let places = places(env(&[("HOME", Path::new("/home/ada"))]));
    assert_eq!(places[0], Path::new("/home/ada/.config/paceline/config.toml"));
    assert_eq!(places[1], Path::new("/etc/paceline/config.toml"));
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(load(&user).unwrap_err().to_string().contains("cannot read the configuration"));
    assert!(load(Path::new("/dev/zero")).unwrap_err().to_string().contains("longer than"));
}

/// The number of mutations of each seed; all of them take one second.
const MUTATIONS: u64 = 200;

#[test]
fn any_text_is_a_configuration_or_an_error_that_says_where() {
    let template = TEMPLATE.as_bytes();
    let seeds: Vec<&[u8]> =
        CASES.iter().map(|(text, ..)| text.as_bytes()).chain([template]).collect();
    let mut number = 0;
    for seed in &seeds {
        for _ in 0..MUTATIONS {
            number += 1;
            let mut chance = Xorshift::new(number);
            let other = seeds[usize::try_from(number).unwrap() % seeds.len()];
            let bytes = mutate(seed, other, &mut chance);
            let text = String::from_utf8_lossy(&bytes);
            if let Err(error) = read(&text, "p.toml") {
                assert!(error.contains("p.toml:"), "mutation {number}: {text:?}: {error}");
            }
        }
    }
}
