"""Records samples in an MCAP file, and reads the file with the package mcap: python recording.py"""

import subprocess
import sys
import tempfile
from pathlib import Path

import paceline
from mcap.reader import make_reader


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, paceline.open() as node:
        path = Path(folder, "run.mcap")
        # The command records any tags of this host, with grants, refusals and link counters.
        command = [sys.executable, "-m", "paceline", "record", "robot/pose", "-o", str(path), "--duration", "3s"]
        recorder = subprocess.Popen(command)
        pose = node.publisher("robot/pose", encoding="application/json")
        if not pose.wait_matching(5):
            raise SystemExit("the recorder did not start")
        for number in range(5):
            pose.put(f'{{"x":{number}}}'.encode())
        recorder.wait(timeout=10)

        with path.open("rb") as file:
            for _schema, channel, message in make_reader(file).iter_messages(topics=["robot/pose"]):
                print(f"{channel.topic} {message.sequence}: {message.data.decode()}")
        print(f"{path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
