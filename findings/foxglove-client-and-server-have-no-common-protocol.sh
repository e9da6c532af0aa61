#!/usr/bin/env bash
# Foxglove's published client library cannot connect to a server of Foxglove's own SDK.
#
# Packages: npm @foxglove/ws-protocol 0.8.0 (client) with ws 8.23.0, PyPI foxglove-sdk 0.30.3 (server).
# Expected: both are Foxglove's, both call themselves version 1 of its WebSocket protocol, and the messages are the same, so
# that the client of one shows the topics of the other.
# Seen: the client offers, and accepts, only the name foxglove.websocket.v1; the server accepts only foxglove.sdk.v1 (and
# v1.1) and answers 400. With the server's name the same messages are exchanged: the first one is serverInfo. A server for
# both has to accept both names, and a test with the client library alone does not show that the application connects.
set -eu
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check foxglove-sdk==0.30.3
npm install --silent --no-audit --no-fund --ignore-scripts @foxglove/ws-protocol@0.8.0 ws@8.23.0 >/dev/null

cat >server.py <<'PY'
import time
import foxglove
server = foxglove.start_server(host="127.0.0.1", port=0)
print(server.port, flush=True)
time.sleep(60)
PY
venv/bin/python server.py >port 2>log &
server=$!
for _ in $(seq 100); do [ -s port ] && break; sleep 0.1; done

cat >client.mjs <<'JS'
import ws from "@foxglove/ws-protocol";
import { WebSocket } from "ws";
const port = process.argv[2];
const connect = (protocol) => new Promise((done) => {
  const socket = new WebSocket(`ws://127.0.0.1:${port}`, [protocol]);
  socket.on("error", () => {});
  socket.once("unexpected-response", (_, response) => { response.resume(); done(`status ${response.statusCode}`); });
  socket.once("message", (data) => { done(`first message ${JSON.parse(data).op}`); socket.close(); });
});
for (const protocol of [ws.FoxgloveClient.SUPPORTED_SUBPROTOCOL, "foxglove.sdk.v1"])
  console.log(`${protocol}: ${await connect(protocol)}`);
process.exit(0);
JS
node client.mjs "$(cat port)" | tee seen
cat >expected <<'TEXT'
foxglove.websocket.v1: status 400
foxglove.sdk.v1: first message serverInfo
TEXT
cmp -s seen expected || { echo "changed: another answer than in the heading" >&2; exit 1; }
