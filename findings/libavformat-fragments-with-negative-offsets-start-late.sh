#!/usr/bin/env bash
# libavformat reads the pictures of a fragmented MP4 with negative composition offsets later than the file states, and those of the same
# film without fragments not.
#
# Packages: PyPI av 18.1.0 (libavformat 62.12.102), numpy 2.3.5. ffmpeg 5.1.9 of Debian 12 does the same.
# Input: 50 pictures with B pictures, written once whole and once in fragments, both with negative_cts_offsets.
# Expected: the first run (trun, version 1) has the signed offsets 0, 2, -1, -1 in pictures, no decode time before it and no edit list, so the
# composition times are 0, 3, 1, 2 (ISO/IEC 14496-12, 8.8.8). The whole film has these presentation times, with a decoding time of -1.
# Seen: the fragments have 1, 4, 2, 3: the largest negative offset is added to each presentation time, and decoding times begin at 0. A
# program that takes these times places the pictures of the fragments one later than the file does.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check av==18.1.0 numpy==2.3.5
cat >film.py <<'PY'
import struct
import av
import numpy


def write(path, flags):
    out = av.open(path, "w", options={"movflags": flags})
    stream = out.add_stream("libx264", rate=25, options={"bf": "2", "b_strategy": "0"})
    stream.width = stream.height = 64
    stream.pix_fmt = "yuv420p"
    for number in range(50):
        picture = numpy.full((64, 64, 3), number * 5, dtype=numpy.uint8)
        out.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
    out.mux(stream.encode())
    out.close()


def times(path):
    film = av.open(path)
    step = int(1 / 25 / film.streams.video[0].time_base)
    packets = [packet for packet in film.demux(video=0) if packet.pts is not None][:4]
    return [packet.pts // step for packet in packets], packets[0].dts // step


def boxes(data, kind):
    found, at = [], 0
    while at + 8 <= len(data):
        size, name = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + size]
        if name == kind:
            found.append(body)
        elif name in (b"moof", b"traf", b"moov", b"trak", b"edts"):
            found += boxes(body, kind)
        at += size
    return found


def offsets(path):
    data = open(path, "rb").read()
    run = boxes(data, b"trun")[0]
    flags, at, values = int.from_bytes(run[1:4], "big"), 8, []
    at += 4 * bool(flags & 1) + 4 * bool(flags & 4)
    for _ in range(4):
        for bit in (0x100, 0x200, 0x400, 0x800):
            if flags & bit:
                if bit == 0x800:
                    values.append(struct.unpack(">i", run[at:at + 4])[0] // 512)
                at += 4
    decode = int.from_bytes(boxes(data, b"tfdt")[0][4:], "big")
    return run[0], values, decode, len(boxes(data, b"elst"))


write("whole.mp4", "negative_cts_offsets")
write("parts.mp4", "frag_keyframe+empty_moov+negative_cts_offsets")
version, values, decode, edits = offsets("parts.mp4")
print(f"trun version {version}, offsets {values}, decode time {decode}, edit lists {edits}")
for name in ("whole", "parts"):
    shown, first = times(f"{name}.mp4")
    print(f"{name}: presentation {shown}, first decoding {first}")
PY
venv/bin/python film.py | tee seen
cat >expected <<'TEXT'
trun version 1, offsets [0, 2, -1, -1], decode time 0, edit lists 0
whole: presentation [0, 3, 1, 2], first decoding -1
parts: presentation [1, 4, 2, 3], first decoding 0
TEXT
cmp -s seen expected || { echo "changed: other times than in the heading" >&2; exit 1; }
