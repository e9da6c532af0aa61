// Three daemons in a row, each on its own simulated host: a robot that publishes, a relay with the
// page, and two subscribers that share the relay's link of 2 Mbit/s.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { BINARY } from "./demo.mjs";

async function freePort() {
  const server = createServer();
  const port = await new Promise((done) => server.listen(0, "127.0.0.1", () => done(server.address().port)));
  server.close();
  return port;
}

/** Starts them. Returns the relay's URL, the processes by name, and a function that ends them. */
export async function startRelay() {
  const folder = mkdtempSync(join(tmpdir(), "plr-"));
  const children = {};
  const start = (name, host, args, stdout = "ignore") => {
    const place = ["--name", name, "--runtime-dir", join(folder, host)];
    children[name] = spawn(BINARY, [...args, ...place], { stdio: ["ignore", stdout, "ignore"] });
    return children[name];
  };
  const [up, thin] = [await freePort(), await freePort()];
  const links = ["--link", `name=up,listen=tcp/127.0.0.1:${up},capacity=50mbit`, "--link", `name=thin,listen=tcp/127.0.0.1:${thin},capacity=2mbit`];
  const relay = start("relay", "b", ["node", "--json", "--http", "127.0.0.1:0", ...links], "pipe");
  const { value } = await createInterface({ input: relay.stdout })[Symbol.asyncIterator]().next();
  start("robot", "a", ["pub", "camera", "--test-card", "160x120@10", "--link", `name=up,connect=tcp/127.0.0.1:${up},capacity=50mbit`]);
  start("bulk", "a", ["pub", "bulk", "--test-card", "640x480@30"]);
  const far = ["--json", "--link", `name=thin,connect=tcp/127.0.0.1:${thin},capacity=2mbit`];
  start("operator", "c", ["sub", "camera", "--within", "200ms", "--loss", "1/10", ...far]);
  start("archive", "d", ["sub", "bulk", ...far]);
  return {
    url: JSON.parse(value).http,
    children,
    async end() {
      const all = Object.values(children);
      const ended = all.map((child) => child.exitCode ?? child.signalCode ?? new Promise((done) => child.once("exit", done)));
      all.forEach((child) => child.kill("SIGKILL"));
      await Promise.all(ended);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
