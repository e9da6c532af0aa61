"""Many players, and the processor time of their server: load.py URL[,URL...] PLAYERS SECONDS SERVER_PID [udp] [stalled=N].

The players take the addresses in turn, and N further players never read. Prints the packets that arrived and the processor time of the
server per packet. With udp only the first player reads, over TCP: the packets of the others are counted as many.
"""

import os
import re
import selectors
import socket
import sys
import time

LINGER = 3.0


class Player:
    """A session whose packets are counted."""

    def __init__(self, url: str, over_udp: bool, stalled: bool = False) -> None:
        host, port = url.split("/")[2].rsplit(":", 1)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if stalled:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect((host, int(port)))
        self.socket.settimeout(20)
        self.packets, self.rest, self.skip = 0, b"", 0
        description = self.ask("DESCRIBE", url, "Accept: application/sdp\r\n")[1]
        controls = re.findall(r"a=control:(\S+)", description)
        track = controls[-1] if controls[-1].startswith("rtsp:") else f"{url.split('?')[0]}/{controls[-1]}"
        transport = "RTP/AVP/TCP;unicast;interleaved=0-1"
        if over_udp:
            self.ports = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
            for port in self.ports:
                port.bind(("127.0.0.1", 0))
            numbers = [port.getsockname()[1] for port in self.ports]
            transport = f"RTP/AVP;unicast;client_port={numbers[0]}-{numbers[1]}"
        head = self.ask("SETUP", track, f"Transport: {transport}\r\n")[0]
        session = re.search(r"Session: *([^;\r]+)", head)
        assert session, head
        self.ask("PLAY", url, f"Session: {session[1]}\r\nRange: npt=0-\r\n")
        self.socket.setblocking(False)

    def ask(self, method: str, url: str, headers: str) -> tuple[str, str]:
        """Sends a request, and returns the head and the body of its answer."""
        self.socket.sendall(f"{method} {url} RTSP/1.0\r\nCSeq: 1\r\n{headers}\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.socket.recv(1)
        text = head.decode()
        assert " 200 " in text.split("\r\n")[0], text
        length = re.search(r"Content-Length: *(\d+)", text, re.IGNORECASE)
        body = b""
        while length and len(body) < int(length[1]):
            body += self.socket.recv(int(length[1]) - len(body))
        return text, body.decode()

    def read(self) -> None:
        """Counts the packets that have arrived."""
        try:
            arrived = self.socket.recv(1 << 18)
        except BlockingIOError:
            return
        assert arrived, "the server closed a connection"
        if self.skip >= len(arrived):
            self.skip -= len(arrived)
            return
        data, at = self.rest + arrived[self.skip :], 0
        while at + 4 <= len(data):
            self.packets += data[at + 1] == 0
            at += 4 + int.from_bytes(data[at + 2 : at + 4], "big")
        self.rest, self.skip = data[at:], max(0, at - len(data))


def processor_time(pid: str) -> float:
    """Returns the processor time of a process in seconds."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_for(seconds: float, selector: selectors.DefaultSelector) -> None:
    """Reads from all players."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for key, _ in selector.select(0.1):
            key.data.read()


def main() -> None:
    """Opens the players, and measures."""
    urls, count, seconds, pid = sys.argv[1:5]
    forms = urls.split(",")
    udp = "udp" in sys.argv[5:]
    stalled = sum(int(word.removeprefix("stalled=")) for word in sys.argv[5:] if word.startswith("stalled="))
    players = [Player(forms[number % len(forms)], udp and number > 0) for number in range(int(count))]
    silent = [Player(forms[number % len(forms)], False, True) for number in range(stalled)]
    selector = selectors.DefaultSelector()
    readers = players[:1] if udp else players
    for player in readers:
        selector.register(player.socket, selectors.EVENT_READ, player)
    read_for(LINGER, selector)
    before, used = sum(player.packets for player in readers), processor_time(pid)
    read_for(float(seconds), selector)
    packets = sum(player.packets for player in readers) - before
    packets *= len(players) // len(readers)
    counts = [player.packets for player in readers]
    assert min(counts) > 0, f"a player got no packet: {counts}"
    used = processor_time(pid) - used
    if silent:
        print(f"{len(players)} players in {len(forms)} forms next to {len(silent)} that do not read")
    print(f"{packets} packets, {used:.2f} s of a processor, {used / packets * 1e6:.2f} us per packet")


if __name__ == "__main__":
    main()
