// The page: each event, once per second, updates all views.

import { follow } from "./api";
import { attribute, byId, text, whileSeen } from "./dom";
import { Store, type View } from "./store";
import { verdict } from "./verdict";
import { showLinks, showProcessors } from "./views/links";
import { parts as rest } from "./views/rest";
import { showSubscriptions } from "./views/subscriptions";
import { showTopology } from "./views/topology";

const parts: [string, (view: View) => void][] = [
  ["topology", showTopology],
  ["subscriptions", (view) => showSubscriptions(view.subs)],
  ["links", (view) => {
    showLinks(view.links);
    showProcessors(view.state.nodes);
  }],
  ...rest,
];
const views = parts.map(([id, update]) => whileSeen(byId(id), update));
const store = new Store();
let shown: View | null = null;

function show(view: View): void {
  const told = verdict(view);
  text(byId("verdict"), told.text);
  attribute(byId("verdict"), "data-health", told.state);
  text(byId("pulse"), `live · ${new Date(view.state.at_ms).toLocaleTimeString("en-GB")}`);
  attribute(byId("pulse"), "data-live", "yes");
  for (const update of views) update(view);
}

follow((state) => {
  if (state) {
    shown = store.take(state);
    show(shown);
    document.documentElement.dataset["ready"] = "yes";
    return;
  }
  text(byId("pulse"), "no answer; the figures are outdated");
  attribute(byId("pulse"), "data-live", "no");
});

let resized = 0;
window.addEventListener("resize", () => {
  window.clearTimeout(resized);
  resized = window.setTimeout(() => shown && show(shown), 100);
});
