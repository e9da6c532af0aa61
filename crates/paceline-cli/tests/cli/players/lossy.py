"""A proxy of RTSP whose packets of RTP over UDP are lost: lossy.py SERVER_PORT LOSS SEED.

Prints its own port. Connections pass unchanged, except for the ports in the headers Transport: packets go through the proxy, which
drops the share LOSS of those from the server to the player, by a generator with SEED. Reports are not dropped. At the end of its standard
input, it prints the number of packets that it passed and dropped.
"""

import random
import re
import select
import socket
import sys
import threading

HOST = "127.0.0.1"


def pair() -> list[socket.socket]:
    """Returns two sockets at neighbouring ports, the first of which is even."""
    while True:
        first, second = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        first.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        first.bind((HOST, 0))
        port = first.getsockname()[1]
        try:
            if port % 2 == 0:
                second.bind((HOST, port + 1))
                return [first, second]
        except OSError:
            pass
        first.close()
        second.close()


class Proxy:
    """The connections and the count of packets."""

    def __init__(self, server: int, loss: float, seed: int) -> None:
        self.server, self.loss, self.random = server, loss, random.Random(seed)
        self.passed = self.dropped = 0
        self.listener = socket.create_server((HOST, 0))

    def run(self) -> None:
        """Serves connections."""
        while True:
            player = self.listener.accept()[0]
            threading.Thread(target=self.connection, args=(player,), daemon=True).start()

    def connection(self, player: socket.socket) -> None:
        """Passes the bytes of a connection, and the packets of its tracks."""
        server = socket.create_connection((HOST, self.server))
        tracks: list[dict] = []
        while True:
            sockets = [player, server, *(end for track in tracks for end in track["near"] + track["far"])]
            for ready in select.select(sockets, [], [])[0]:
                if ready in (player, server):
                    try:
                        data = ready.recv(1 << 16)
                    except OSError:
                        data = b""
                    if not data:
                        player.close()
                        server.close()
                        return
                    if ready is player:
                        server.sendall(self.request(data, tracks))
                    else:
                        player.sendall(self.answer(data, tracks))
                else:
                    self.datagram(ready, tracks)

    def request(self, data: bytes, tracks: list[dict]) -> bytes:
        """Replaces the ports of the player."""
        found = re.search(rb"client_port=(\d+)-(\d+)", data)
        if not found:
            return data
        ports = [int(found[1]), int(found[2])]
        track = {"player": ports, "near": pair(), "far": pair(), "server": None}
        tracks.append(track)
        own = track["far"][0].getsockname()[1]
        return data.replace(found[0], b"client_port=%d-%d" % (own, own + 1))

    def answer(self, data: bytes, tracks: list[dict]) -> bytes:
        """Replaces the ports of the server, and returns those of the player."""
        found = re.search(rb"server_port=(\d+)-(\d+)", data)
        if not found or not tracks:
            return data
        track = tracks[-1]
        track["server"] = [int(found[1]), int(found[2])]
        near, far = (track[side][0].getsockname()[1] for side in ("near", "far"))
        data = data.replace(found[0], b"server_port=%d-%d" % (near, near + 1))
        own = b"client_port=%d-%d" % (far, far + 1)
        return data.replace(own, b"client_port=%d-%d" % tuple(track["player"]))

    def datagram(self, ready: socket.socket, tracks: list[dict]) -> None:
        """Passes a packet, or drops it."""
        data = ready.recv(1 << 16)
        for track in tracks:
            for place in range(2):
                if ready is track["far"][place]:
                    if place == 0 and self.random.random() < self.loss:
                        self.dropped += 1
                        return
                    self.passed += place == 0
                    track["near"][place].sendto(data, (HOST, track["player"][place]))
                elif ready is track["near"][place] and track["server"]:
                    track["far"][place].sendto(data, (HOST, track["server"][place]))


def main() -> None:
    """Serves until the end of the standard input."""
    proxy = Proxy(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
    print(proxy.listener.getsockname()[1], flush=True)
    threading.Thread(target=proxy.run, daemon=True).start()
    sys.stdin.read()
    print(f"{proxy.passed} passed, {proxy.dropped} dropped", flush=True)


if __name__ == "__main__":
    main()
