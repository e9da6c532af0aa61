// The page: each event, once per second, updates all views.

import { follow, history } from "./api";
import { range } from "./chart";
import { attribute, byId, el, text, whileSeen } from "./dom";
import { colour } from "./promise";
import { Store, type View } from "./store";
import { showClocks } from "./views/clocks";
import { showLinks, showProcessors } from "./views/links";
import { parts as rest } from "./views/rest";
import { showStory } from "./views/story";
import { showSubscriptions } from "./views/subscriptions";
import { showTopology } from "./views/topology";

const parts: [string, (view: View) => void][] = [
  ["topology", showTopology],
  ["subscriptions", (view) => showSubscriptions(view.subs)],
  ["links", (view) => {
    showLinks(view.links);
    showProcessors(view.state.nodes);
    showClocks(view.state.nodes);
  }],
  ...rest,
];
const views = parts.map(([id, update]) => {
  const part = byId(id);
  return whileSeen(part.closest("section") ?? part, update);
});
const store = new Store();
let shown: View | null = null;

function show(view: View): void {
  const { text: summary, state } = view.state.health;
  text(byId("verdict"), summary.charAt(0).toUpperCase() + summary.slice(1));
  attribute(byId("verdict"), "data-health", colour(state));
  text(byId("pulse"), `live · ${new Date(view.state.at_ms).toLocaleTimeString("en-GB")}`);
  attribute(byId("pulse"), "data-live", "yes");
  // It hides its parts itself, so it is always current.
  showStory(view);
  for (const update of views) update(view);
}

for (const seconds of [120, 600]) {
  const button = el("button", { type: "button", "aria-pressed": String(range.seconds === seconds) }, `${seconds / 60} min`);
  button.addEventListener("click", () => {
    range.seconds = seconds;
    for (const other of byId("range").children) attribute(other, "aria-pressed", String(other === button));
    if (shown) show(shown);
  });
  byId("range").append(button);
}

void history().then((past) => {
  if (!past) return;
  store.remember(past);
  if (shown) show(shown);
});

follow((state) => {
  if (state) {
    shown = store.take(state);
    show(shown);
    document.documentElement.dataset["ready"] = "yes";
    // The reading that the page shows, so that tests compare figures of one instant.
    document.documentElement.dataset["at"] = String(state.at_ms);
    return;
  }
  text(byId("pulse"), "no answer; the figures are outdated");
  attribute(byId("pulse"), "data-live", "no");
});
