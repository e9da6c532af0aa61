"""A peer of WebRTC by aiortc: views a tag, or publishes pictures. Prints what it received or sent.

    python3 aiortc_peer.py view http://127.0.0.1:8470/whep/robot/camera 60
    python3 aiortc_peer.py publish http://127.0.0.1:8470/whip/phone/camera 60
"""

import asyncio
import fractions
import sys
import urllib.request

import av
import numpy
from aiortc import RTCPeerConnection, RTCRtpReceiver, RTCSessionDescription, VideoStreamTrack


class Card(VideoStreamTrack):
    """Pictures of 320x240 at 30 Hz."""

    number = 0

    async def recv(self):
        await asyncio.sleep(1 / 30)
        picture = numpy.full((240, 320, 3), self.number % 256, numpy.uint8)
        frame = av.VideoFrame.from_ndarray(picture, "rgb24")
        frame.pts, frame.time_base = self.number * 3000, fractions.Fraction(1, 90000)
        self.number += 1
        return frame


def post(url, sdp):
    request = urllib.request.Request(url, sdp.encode(), {"content-type": "application/sdp"})
    with urllib.request.urlopen(request) as answer:
        return answer.read().decode(), answer.headers["location"]


async def main(action, url, count):
    peer = RTCPeerConnection()
    received = asyncio.Queue()
    if action == "view":
        peer.addTransceiver("video", direction="recvonly")
        peer.on("track", lambda track: received.put_nowait(track))
    else:
        card = Card()
        peer.addTrack(card)
        codecs = RTCRtpReceiver.getCapabilities("video").codecs
        peer.getTransceivers()[0].setCodecPreferences([it for it in codecs if it.mimeType == "video/H264"])
    await peer.setLocalDescription(await peer.createOffer())
    sdp, location = await asyncio.to_thread(post, url, peer.localDescription.sdp)
    await peer.setRemoteDescription(RTCSessionDescription(sdp, "answer"))
    if action == "view":
        track = await received.get()
        sizes = set()
        for _ in range(count):
            frame = await asyncio.wait_for(track.recv(), 10)
            sizes.add(f"{frame.width}x{frame.height}")
        print(f"aiortc: {count} pictures of {' and '.join(sorted(sizes))} at {location}")
    else:
        while card.number < count:
            await asyncio.sleep(0.1)
        print(f"aiortc: sent {card.number} pictures at {location}")
    await peer.close()


asyncio.run(asyncio.wait_for(main(sys.argv[1], sys.argv[2], int(sys.argv[3])), 30))
