#!/usr/bin/env bash
# libavformat writes AAC into a file named .m2ts as private data without a descriptor, and into .ts as AAC.
#
# Packages: PyPI av 18.1.0 (libavformat 62.12.102), numpy 2.3.5. ffmpeg 5.1.9 of Debian 12 does the same.
# Expected: .m2ts is MPEG-TS with four more bytes before each packet, so the program map states the same stream type for AAC in ADTS: 0x0f
# (ISO/IEC 13818-1, table 2-34). Or the writer refuses AAC, which Blu-ray does not have.
# Seen: the type in .m2ts is 0x06 (private data) with no descriptor and no registration, so nothing in the file names the codec. The same
# library finds the sound again, because it probes the bytes of private data. A reader that trusts the program map finds no sound.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check av==18.1.0 numpy==2.3.5
cat >sound.py <<'PY'
import av
import numpy


def write(path):
    out = av.open(path, "w", format="mpegts")
    stream = out.add_stream("aac", rate=48000, layout="mono")
    for number in range(100):
        silence = numpy.zeros((1, 1024), dtype=numpy.float32)
        frame = av.AudioFrame.from_ndarray(silence, format="fltp", layout="mono")
        frame.sample_rate, frame.pts = 48000, number * 1024
        out.mux(stream.encode(frame))
    out.mux(stream.encode())
    out.close()


def described(path, size):
    data = open(path, "rb").read()
    for at in range(size - 188, len(data), size):
        packet = data[at:at + 188]
        number = (packet[1] & 31) << 8 | packet[2]
        # The first table behind those of the network and of services: the program map.
        if packet[1] & 64 and number not in (0, 17) and packet[4] == 0 and packet[5] == 2:
            section = packet[5:]
            entry = section[12 + ((section[10] & 15) << 8 | section[11]):]
            return f"type {entry[0]:#04x}, {(entry[3] & 15) << 8 | entry[4]} bytes of descriptors"


for path, size in (("sound.ts", 188), ("sound.m2ts", 192)):
    write(path)
    found = [stream.codec_context.name for stream in av.open(path).streams]
    print(f"{path}: {described(path, size)}; found by its bytes: {' '.join(found)}")
PY
venv/bin/python sound.py | tee seen
cat >expected <<'TEXT'
sound.ts: type 0x0f, 0 bytes of descriptors; found by its bytes: aac
sound.m2ts: type 0x06, 0 bytes of descriptors; found by its bytes: aac
TEXT
cmp -s seen expected || { echo "changed: other types than in the heading" >&2; exit 1; }
