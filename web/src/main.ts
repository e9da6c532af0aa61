// The page: one event a second becomes one view of everything.

import { follow } from "./api";
import { attribute, byId, text, whileSeen } from "./dom";
import { Store, type View } from "./store";
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

/** The one sentence that says whether all is well. */
function verdict(view: View): { text: string; state: string } {
  const served = view.subs.filter((sub) => sub.sub.refusals.length === 0 && sub.health !== "idle");
  const short = served.filter((sub) => sub.health !== "good");
  const refused = view.subs.filter((sub) => sub.sub.refusals.length > 0);
  const no = refused.length > 0 ? `; ${refused.length} refused, with an offer` : "";
  if (view.subs.length === 0) return { text: "nobody subscribes yet", state: "idle" };
  if (short.length === 0) {
    const all = served.length === 1 ? "the subscription gets" : `all ${served.length} subscriptions get`;
    return { text: `${all} what was asked for${no}`, state: "good" };
  }
  const broken = short.filter((sub) => sub.sub.within_us !== null);
  if (broken.length === 0) return { text: `every promise holds; ${short.length} without one gets less${no}`, state: "good" };
  const names = short.slice(0, 2).map((sub) => `${sub.node.name} ${sub.sub.pattern}`);
  return { text: `${short.length} of ${served.length} get less: ${names.join(", ")}${no}`, state: "warm" };
}

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
  text(byId("pulse"), "no answer; what is shown is old");
  attribute(byId("pulse"), "data-live", "no");
});

let resized = 0;
window.addEventListener("resize", () => {
  window.clearTimeout(resized);
  resized = window.setTimeout(() => shown && show(shown), 100);
});
