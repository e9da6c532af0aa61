// The operator's page: the camera, values and steering of a robot, each at a contract.

import { connect, type Connection, type Publisher, RefusedError, Screen, type Sample, type Subscription, type Want } from "../client/index";
import { byId as found } from "./dom";
import { Steering } from "./steering";

const byId = <Kind extends HTMLElement = HTMLElement>(id: string): Kind => found(id) as Kind;

/** Commands per second. */
const COMMAND_HZ = 20;
/** Zero commands after STOP and after the stick is released, so that a lost one does not matter. */
const STOPS = 10;
const VALUES_MAX = 24;
/** The interval of looking for new publishers, in milliseconds. */
const LOOK_MS = 2000;

const options = new URLSearchParams(location.search);
/** The tag of the commands; the robot subscribes to it with an age limit. */
const COMMANDS = options.get("commands") ?? "robot/velocity";
/** The tags that are shown. */
const PATTERN = options.get("tags") ?? "**";
/** The request for the camera: an elastic contract, so that steering stays when the link gets thin. */
const CAMERA: Want = {
  maxHz: Number(options.get("max_hz") ?? 15),
  minHz: 2,
  size: options.get("size") ?? "640x480,320x240,160x120",
  withinMs: Number(options.get("within_ms") ?? 300),
  loss: "1/10",
  importance: 30,
};

const up = byId("up");
const steering = new Steering(byId("pad"), byId("stick"));
let camera: { subscription: Subscription; screen: Screen } | undefined;
let armed = false;
let stops = 0;

/** Shows the state of a contract. */
function contract(name: string, state: string, detail = ""): void {
  const id = `contract-${name}`;
  let row = document.getElementById(id);
  if (!row) {
    row = document.createElement("p");
    row.id = id;
    byId("contracts").append(row);
  }
  row.className = state;
  const [about, small] = [document.createElement("b"), document.createElement("small")];
  about.textContent = state.replace("_", " ");
  small.textContent = detail;
  row.replaceChildren(`${name}: `, about, small);
}

/** Shows the answers of a subscription, and takes the offer of a refusal once. */
function answers(name: string, subscription: Subscription): void {
  let offered = false;
  contract(name, "waiting");
  subscription.on("granted", ({ form, text }) => contract(name, "granted", `${form.text}, ${text}`));
  subscription.on("bestEffort", (why) => contract(name, "best_effort", why));
  subscription.on("warned", (why) => contract(name, "warned", why));
  subscription.on("withdrawn", () => contract(name, "waiting", "the publisher or its path has gone"));
  subscription.on("error", (why) => contract(name, "refused", why));
  subscription.on("refused", ({ text, offer }) => {
    contract(name, "refused", text);
    const { max_hz: maxHz, size, within, loss } = offer as Record<string, string | number | undefined>;
    if (offered || (maxHz === undefined && size === undefined && within === undefined)) return;
    offered = true;
    const { minHz: _, ...rest } = CAMERA;
    subscription.change({
      ...rest,
      ...(maxHz === undefined ? {} : { maxHz: Number(maxHz) }),
      ...(size === undefined ? {} : { size: String(size) }),
      ...(within === undefined ? {} : { withinMs: Number.parseFloat(String(within)) / 1000 }),
      ...(loss === undefined ? {} : { loss: String(loss) }),
    });
  });
}

function show(connection: Connection, tag: string): void {
  camera?.screen.close();
  camera?.subscription.close();
  const subscription = connection.subscribe({ tag, ...CAMERA });
  const screen = new Screen(subscription, byId<HTMLCanvasElement>("camera"));
  camera = { subscription, screen };
  byId("blank").textContent = "no picture yet";
  answers("camera", subscription);
  screen.onpicture = ({ ageMs, late }) => {
    byId("blank").textContent = "";
    byId("age").textContent = `${ageMs.toFixed(0)} ms old`;
    byId("age").className = late ? "late" : "";
  };
  screen.onerror = (why) => { byId("blank").textContent = why; };
  subscription.answer.catch((error: unknown) => {
    if (error instanceof RefusedError) byId("blank").textContent = error.message;
  });
}

const isPicture = (encoding: string) => encoding.startsWith("image/") || encoding.startsWith("video/");

/** Offers the cameras of the network; shows the first one by itself. */
async function look(connection: Connection): Promise<void> {
  const sources = await connection.sources(PATTERN).catch(() => []);
  const tags = sources.filter(({ encoding }) => isPicture(encoding)).map(({ tag }) => tag);
  const select = byId<HTMLSelectElement>("cameras");
  const known = [...select.options].map(({ value }) => value);
  if (tags.join() !== known.join()) {
    const chosen = select.value || options.get("camera") || "";
    select.replaceChildren(...tags.map((tag) => new Option(tag, tag, false, tag === chosen)));
  }
  select.hidden = tags.length === 0;
  const wanted = select.value;
  if (wanted && camera?.subscription.request.tag !== wanted) show(connection, wanted);
  if (!wanted) byId("blank").textContent = "no camera is published yet";
}

/** Shows the newest value of each tag. */
function values(connection: Connection): void {
  const rows = new Map<string, HTMLTableRowElement>();
  const table = byId("values").querySelector("table");
  const take = ({ tag, encoding, payload, ageMs }: Sample) => {
    if (isPicture(encoding) || encoding.startsWith("audio/") || tag === COMMANDS) return;
    let row = rows.get(tag);
    if (!row) {
      if (rows.size >= VALUES_MAX || !table) return;
      row = table.insertRow();
      row.append(...[0, 1, 2].map(() => document.createElement("td")));
      rows.set(tag, row);
    }
    const isText = encoding.startsWith("text/") || encoding.startsWith("application/json");
    const text = isText ? new TextDecoder().decode(payload.subarray(0, 300)) : `${payload.length} bytes`;
    const [name, value, age] = row.cells;
    if (name && value && age) [name.textContent, value.textContent, age.textContent] = [tag, text, `${ageMs.toFixed(0)} ms`];
  };
  const seen = new Set<string>();
  const subscribe = async () => {
    for (const { tag, encoding } of await connection.sources(PATTERN).catch(() => [])) {
      if (seen.has(tag) || seen.size >= VALUES_MAX || isPicture(encoding) || encoding.startsWith("audio/")) continue;
      seen.add(tag);
      connection.subscribe({ tag, maxHz: 4 }).on("sample", take);
    }
  };
  void subscribe();
  setInterval(() => { if (connection.isUp) void subscribe(); }, LOOK_MS);
}

function arm(on: boolean): void {
  if (armed && !on) stops = STOPS;
  armed = on;
  steering.release();
  document.body.classList.toggle("armed", on);
  byId("arm").setAttribute("aria-pressed", String(on));
  byId("arm").textContent = on ? "Driving" : "Drive";
}

/** Publishes commands while the operator drives, and zeros after that. What cannot leave is dropped, never sent later. */
function drive(connection: Connection): void {
  if (!connection.mayPublish) {
    contract("steering", "refused", "the token of this page grants reading only");
    byId<HTMLButtonElement>("arm").disabled = true;
    return;
  }
  const commands: Publisher = connection.publish({ tag: COMMANDS, encoding: "application/json", hz: COMMAND_HZ, bytesMax: 128 });
  contract("steering", "waiting", `nobody subscribes to ${COMMANDS}`);
  commands.on("matching", (matching) => contract("steering", matching ? "best_effort" : "waiting", matching ? `${COMMANDS} is received` : `nobody subscribes to ${COMMANDS}`));
  commands.on("granted", ({ text }) => contract("steering", "granted", text));
  commands.on("error", (why) => contract("steering", "refused", why));
  let number = 0;
  setInterval(() => {
    const { forward, left } = steering.read();
    const output = byId("command");
    if (!armed && stops === 0) {
      output.textContent = "Press Drive, then use the stick, arrow keys or a gamepad.";
      return;
    }
    const command = armed ? { forward, left } : { forward: 0, left: 0 };
    if (!armed) stops -= 1;
    number += 1;
    const sent = commands.put({ ...command, number });
    const lost = sent ? "" : " · not sent: no connection";
    output.textContent = `forward ${command.forward.toFixed(2)} · left ${command.left.toFixed(2)} · ${commands.published} sent, ${commands.dropped} dropped${lost}`;
  }, 1000 / COMMAND_HZ);
}

function follow(connection: Connection): void {
  const bits = (value: number) => (value >= 1e6 ? `${(value / 1e6).toFixed(1)} Mbit/s` : `${(value / 1e3).toFixed(0)} kbit/s`);
  const isUp = () => {
    up.textContent = `connected over ${connection.carrier === "webtransport" ? "WebTransport" : "WebSocket"}`;
    up.className = "good";
  };
  isUp();
  connection.on("up", isUp);
  connection.on("down", (why) => {
    arm(false);
    up.textContent = `no connection: ${why}. The robot stops by its own clock`;
    up.className = "bad";
  });
  connection.on("link", ({ state, estimate_bits_per_s: estimate, contracts_bits_per_s: contracts, reserved_bits_per_s: reserved }) => {
    byId("link").textContent = `link ${bits(estimate)}, ${state} · reserved ${bits(reserved)} of ${bits(contracts)} · round trip ${(connection.clock.roundTrip() / 1000).toFixed(0)} ms`;
    byId("link").className = state === "falling" || state === "outage" ? "falling" : "";
  });
}

async function run(): Promise<void> {
  const connection = await connect();
  byId("node").textContent = connection.node;
  follow(connection);
  drive(connection);
  values(connection);
  byId("cameras").addEventListener("change", () => show(connection, byId<HTMLSelectElement>("cameras").value));
  await look(connection);
  setInterval(() => { if (connection.isUp) void look(connection); }, LOOK_MS);
}

byId("arm").addEventListener("click", () => arm(!armed));
byId("stop").addEventListener("click", () => {
  stops = STOPS;
  arm(false);
});
addEventListener("keydown", ({ code }) => { if (code === "Space" || code === "Escape") byId("stop").click(); });
// A page that nobody looks at does not drive.
document.addEventListener("visibilitychange", () => { if (document.hidden) arm(false); });

run().catch((error: unknown) => {
  up.textContent = error instanceof Error ? error.message : String(error);
  up.className = "bad";
});
