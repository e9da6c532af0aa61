"""A peer of WebRTC by GStreamer's webrtcbin: views a tag, or publishes a test picture. Prints what it received or sent.

    /usr/bin/python3 gstreamer_peer.py view http://127.0.0.1:8470/whep/robot/camera 60
    /usr/bin/python3 gstreamer_peer.py publish http://127.0.0.1:8470/whip/phone/camera 60
"""

import hashlib
import re
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstSdp", "1.0")
gi.require_version("GstWebRTC", "1.0")
from gi.repository import GLib, Gst, GstSdp, GstWebRTC

H264 = "application/x-rtp,media=video,encoding-name=H264,payload=96,clock-rate=90000,packetization-mode=(string)1"
SOURCE = (
    "videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=30/1 ! x264enc tune=zerolatency key-int-max=30 "
    f"! rtph264pay config-interval=-1 ! {H264} ! webrtcbin name=peer bundle-policy=max-bundle"
)


class Peer:
    def __init__(self, action, url, count):
        self.url, self.count, self.number, self.sizes = url, count, 0, set()
        self.loop = GLib.MainLoop()
        view = action == "view"
        caps = Gst.Caps.from_string(H264)
        if view:
            self.pipeline = Gst.Pipeline()
            self.peer = Gst.ElementFactory.make("webrtcbin")
            self.peer.set_property("bundle-policy", GstWebRTC.WebRTCBundlePolicy.MAX_BUNDLE)
            self.pipeline.add(self.peer)
        else:
            self.pipeline = Gst.parse_launch(SOURCE)
            self.peer = self.pipeline.get_by_name("peer")
        # The certificates that GStreamer 1.22 makes are of RSA, which str0m does not read.
        self.peer.connect("deep-element-added", self.added)
        self.pipeline.set_state(Gst.State.READY)
        if view:
            self.peer.emit("add-transceiver", GstWebRTC.WebRTCRTPTransceiverDirection.RECVONLY, caps)
            self.peer.connect("pad-added", self.decode)
        else:
            pad = self.peer.get_static_pad("sink_0")
            pad.add_probe(Gst.PadProbeType.BUFFER | Gst.PadProbeType.BUFFER_LIST, self.sent)
            transceiver = self.peer.emit("get-transceiver", 0)
            transceiver.set_property("direction", GstWebRTC.WebRTCRTPTransceiverDirection.SENDONLY)
            transceiver.set_property("codec-preferences", caps)
        self.peer.connect("on-negotiation-needed", self.offer)
        self.pipeline.set_state(Gst.State.PLAYING)
        GLib.timeout_add_seconds(30, self.late)
        self.loop.run()
        self.pipeline.set_state(Gst.State.NULL)

    def added(self, _, __, element):
        factory = element.get_factory()
        if factory is not None and factory.get_name() == "dtlssrtpdec":
            element.set_property("pem", PEM)

    def late(self):
        sys.exit(f"after 30 s: {self.number} pictures")

    def offer(self, peer):
        peer.emit("create-offer", None, Gst.Promise.new_with_change_func(self.offered, None))

    def offered(self, promise, _):
        reply = promise.get_reply()
        if not reply.has_field("offer"):
            print(reply.to_string(), file=sys.stderr)
            return
        offer = reply.get_value("offer")
        self.peer.emit("set-local-description", offer, Gst.Promise.new())
        # The offer was made before the certificate was set.
        text = re.sub(r"a=fingerprint:sha-256 [0-9A-F:]+", f"a=fingerprint:sha-256 {FINGERPRINT}", offer.sdp.as_text())
        request = urllib.request.Request(self.url, text.encode(), {"content-type": "application/sdp"})
        try:
            with urllib.request.urlopen(request) as answer:
                text, self.location = answer.read(), answer.headers["location"]
        except urllib.error.HTTPError as error:
            print(f"{error}: {error.read().decode()}", file=sys.stderr)
            GLib.idle_add(self.loop.quit)
            return
        _, sdp = GstSdp.SDPMessage.new()
        GstSdp.sdp_message_parse_buffer(text, sdp)
        answer = GstWebRTC.WebRTCSessionDescription.new(GstWebRTC.WebRTCSDPType.ANSWER, sdp)
        self.peer.emit("set-remote-description", answer, Gst.Promise.new())

    def decode(self, _, pad):
        part = Gst.parse_bin_from_description("rtph264depay ! h264parse ! avdec_h264 ! fakesink name=end sync=false signal-handoffs=true", True)
        part.get_by_name("end").connect("handoff", self.shown)
        self.pipeline.add(part)
        part.sync_state_with_parent()
        pad.link(part.get_static_pad("sink"))

    def shown(self, _, buffer, pad):
        picture = pad.get_current_caps().get_structure(0)
        self.sizes.add(f"{picture.get_value('width')}x{picture.get_value('height')}")
        self.end("pictures")

    def sent(self, _, info):
        state = self.peer.get_property("connection-state")
        if state == GstWebRTC.WebRTCPeerConnectionState.CONNECTED:
            self.end("packets sent")
        return Gst.PadProbeReturn.OK

    def end(self, what):
        self.number += 1
        if self.number == self.count:
            of = f" of {' and '.join(sorted(self.sizes))}" if self.sizes else ""
            print(f"GStreamer: {self.number} {what}{of} at {self.location}")
            GLib.idle_add(self.loop.quit)


def certificate():
    """Returns a new certificate of ECDSA, and its key."""
    with tempfile.TemporaryDirectory() as folder:
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{folder}/key"]
        words = ["openssl", "req", "-x509", *key, "-days", "30", "-subj", "/CN=peer", "-out", f"{folder}/certificate"]
        subprocess.run(words, check=True, stderr=subprocess.DEVNULL)
        return "".join(open(f"{folder}/{name}").read() for name in ("certificate", "key"))


PEM = certificate()
DIGEST = hashlib.sha256(ssl.PEM_cert_to_DER_cert(PEM[: PEM.index("-----BEGIN PRIVATE")].strip())).hexdigest().upper()
FINGERPRINT = ":".join(DIGEST[at : at + 2] for at in range(0, 64, 2))
Gst.init(None)
Peer(sys.argv[1], sys.argv[2], int(sys.argv[3]))
