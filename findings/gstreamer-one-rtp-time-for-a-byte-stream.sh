#!/usr/bin/env bash
# GStreamer's h264parse reads the rate of an H.264 byte stream and gives no times to its pictures, so that rtph264pay sends all
# of them with one RTP time.
#
# Packages: Debian 12, gstreamer1.0-plugins-bad 1.22.0-4+deb12u8 (h264parse), gstreamer1.0-plugins-good 1.22.0-5+deb12u4
# (rtph264pay), gstreamer1.0-tools and libgstreamer1.0-0 1.22.0-2+deb12u1.
# Input: 20 intra pictures of 16 x 16 as a byte stream (ITU-T H.264, annex B), whose parameter set states 25 pictures per second.
# Expected: the parser announces 25/1, so the RTP time grows by 3,600 per picture at 90 kHz (RFC 6184, section 5.1: the time
# of sampling), as it does for the same file with ffmpeg -c copy -f rtp.
# Seen: the caps have framerate=25/1 and the marker bit ends each of the 20 pictures, but all have the same RTP time. A receiver that
# cuts pictures where the time changes sees one picture; one that plays by the time shows them at once.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
chmod 755 .
fetch() { apt-get download "$@" >/dev/null 2>&1; }
fetch gstreamer1.0-plugins-bad=1.22.0-4+deb12u8 libgstreamer-plugins-bad1.0-0=1.22.0-4+deb12u8
fetch gstreamer1.0-plugins-good=1.22.0-5+deb12u4 libgstreamer-plugins-base1.0-0=1.22.0-3+deb12u7
fetch gstreamer1.0-tools=1.22.0-2+deb12u1 libgstreamer1.0-0=1.22.0-2+deb12u1
fetch libglib2.0-0 liborc-0.4-0 libunwind8 libdw1 libelf1
for package in *.deb; do dpkg -x "$package" root; done

python3 - <<'PYTHON'
class Bits:
    def __init__(self):
        self.text = ""
    def fixed(self, value, count):
        self.text += format(value, f"0{count}b")
        return self
    def exp_golomb(self, *values):
        for value in values:
            code = format(value + 1, "b")
            self.text += "0" * (len(code) - 1) + code
        return self
    def align(self):
        self.text += "0" * (-len(self.text) % 8)
        return self
    def unit(self, header):
        self.fixed(1, 1).align()
        body = int(self.text, 2).to_bytes(len(self.text) // 8, "big")
        # Emulation prevention.
        out, zeros = bytearray(), 0
        for byte in body:
            if zeros >= 2 and byte <= 3:
                out.append(3)
                zeros = 0
            out.append(byte)
            zeros = zeros + 1 if byte == 0 else 0
        return b"\0\0\0\1" + bytes([header]) + bytes(out)

sequence = Bits().fixed(66, 8).fixed(0, 8).fixed(10, 8).exp_golomb(0, 0, 2, 0).fixed(0, 1).exp_golomb(0, 0)
# Frames only; then the VUI with the timing alone: 50 fields per second at a fixed rate.
sequence.fixed(1, 1).fixed(0, 1).fixed(0, 1).fixed(1, 1).fixed(0, 4)
sequence.fixed(1, 1).fixed(1, 32).fixed(50, 32).fixed(1, 1).fixed(0, 4)
picture = Bits().exp_golomb(0, 0).fixed(0, 2).exp_golomb(0, 0, 0).fixed(0, 3).exp_golomb(0, 0, 0).fixed(0, 3)
stream = b""
for number in range(20):
    stream += sequence_unit if number else (sequence_unit := sequence.unit(0x67))
    stream += picture_unit if number else (picture_unit := picture.unit(0x68))
    # One macroblock of raw samples, all 128.
    slice_ = Bits().exp_golomb(0, 7, 0).fixed(0, 4).exp_golomb(number % 2).fixed(0, 2).exp_golomb(0, 25).align()
    for _ in range(384):
        slice_.fixed(128, 8)
    stream += slice_.unit(0x65)
open("in.264", "wb").write(stream)
PYTHON

libraries=$(find root -name 'libgstreamer-1.0.so.0' -printf '%h\n' | head -n 1)
export LD_LIBRARY_PATH="$folder/$libraries" GST_REGISTRY="$folder/registry"
export GST_PLUGIN_SYSTEM_PATH="$folder/$libraries/gstreamer-1.0"
scanner=$(find root -name gst-plugin-scanner | head -n 1)
export GST_PLUGIN_SCANNER="$folder/$scanner"
root/usr/bin/gst-launch-1.0 -v filesrc location=in.264 ! h264parse ! rtph264pay ! rtpstreampay ! filesink location=out.rtp >log 2>&1
rate=$(grep -o 'framerate=(fraction)[0-9/]*' log | sort -u | head -n 1)
python3 - "$rate" <<'PYTHON'
import sys
data, at, times, ends = open("out.rtp", "rb").read(), 0, set(), 0
while at < len(data):
    length = int.from_bytes(data[at:at + 2], "big")
    packet = data[at + 2:at + 2 + length]
    times.add(packet[4:8])
    ends += packet[1] >> 7
    at += 2 + length
print(f"h264parse announces {sys.argv[1]}; {ends} pictures end with a marker, RTP times: {len(times)}")
sys.exit(0 if (ends, len(times)) == (20, 1) and sys.argv[1].endswith("25/1") else "changed: not one RTP time for 20 pictures")
PYTHON
