// A minimal replacement for a framework: elements, texts that change only when they differ, and
// keyed lists.

type Attributes = Record<string, string | number | boolean | ((event: Event) => void)>;

const SVG = "http://www.w3.org/2000/svg";

function fill(element: Element, attributes: Attributes, children: (Node | string)[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children);
}

/** Creates an HTML element. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

/** Creates an SVG element. */
export function svg(tag: string, attributes: Attributes = {}, ...children: (Node | string)[]): SVGElement {
  const element = document.createElementNS(SVG, tag);
  fill(element, attributes, children);
  return element;
}

/** Returns the element of index.html with this id. */
export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/** Sets a text if it differs. The text node stays, because a new one costs a box of its own in layout. */
export function text(element: Element, value: string): void {
  const [first, ...others] = element.childNodes;
  if (first instanceof Text && others.length === 0) {
    if (first.data !== value) first.data = value;
  } else if (element.textContent !== value) element.textContent = value;
}

/** Sets an attribute if it differs; `null` removes it. */
export function attribute(element: Element, name: string, value: string | null): void {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** Shows `what` in place of an empty list. */
export function empty(id: string, items: readonly unknown[], what: string): void {
  attribute(byId(id), "data-empty", items.length === 0 ? what : null);
}

/**
 * An element within this distance of the screen counts as visible, so that it is current when
 * scrolled into view.
 */
const NEAR = "200px";

/**
 * Updates an element only while it is visible. Hidden elements cost nothing and show the newest item when scrolled into
 * view.
 */
export function whileSeen<T>(element: Element, update: (item: T) => void): (item: T) => void {
  // Visible until the browser reports otherwise, so that the page gets its layout at once.
  let seen = true;
  let waiting: { item: T } | null = null;
  const watch = new IntersectionObserver((entries) => {
    seen = entries.at(-1)?.isIntersecting ?? seen;
    if (seen && waiting) update(waiting.item);
    if (seen) waiting = null;
  }, { rootMargin: NEAR });
  watch.observe(element);
  return (item) => {
    if (seen) update(item);
    else waiting = { item };
  };
}

/** Calls back with the width and height of an element's content in pixels, now and whenever they change. Returns the end of it. */
export function onResize(element: Element, changed: (size: { width: number; height: number }) => void): () => void {
  const watch = new ResizeObserver((entries) => {
    const box = entries.at(-1)?.contentRect;
    if (box) changed({ width: Math.round(box.width), height: Math.round(box.height) });
  });
  watch.observe(element);
  return () => watch.disconnect();
}

/** The representation of one item. */
export interface Shown<T> {
  element: Element;
  update(item: T): void;
  /** Called when the item is removed. */
  gone?(): void;
}

/**
 * Elements for items, matched by key: an item that remains keeps its element, its focus and its
 * position.
 */
export class Keyed<T> {
  readonly #shown = new Map<string, Shown<T>>();

  constructor(
    private readonly parent: Element,
    private readonly key: (item: T) => string,
    private readonly create: (item: T) => Shown<T>,
  ) {}

  update(items: readonly T[]): void {
    const keys = new Set(items.map(this.key));
    for (const [key, shown] of this.#shown) {
      if (keys.has(key)) continue;
      shown.gone?.();
      shown.element.remove();
      this.#shown.delete(key);
    }
    let place = this.parent.firstElementChild;
    for (const item of items) {
      const key = this.key(item);
      let shown = this.#shown.get(key);
      if (!shown) {
        shown = this.create(item);
        this.#shown.set(key, shown);
      }
      shown.update(item);
      if (shown.element === place) place = place.nextElementSibling;
      else this.parent.insertBefore(shown.element, place);
    }
  }
}

/** A table with a header row; cells contain text or elements. */
export class Table<T> {
  readonly element: HTMLElement;
  readonly #rows: Keyed<T>;
  readonly #body = el("tbody");
  readonly #empty: HTMLElement;

  constructor(caption: string, heads: string[], key: (item: T) => string, cells: (item: T) => (string | Node)[], empty: string) {
    const head = el("tr", {}, ...heads.map((name) => el("th", { scope: "col" }, name)));
    this.#empty = el("p", { class: "empty" }, empty);
    const table = el("table", {}, el("caption", { class: "unseen" }, caption), el("thead", {}, head), this.#body);
    this.element = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, table, this.#empty);
    this.#rows = new Keyed(this.#body, key, () => {
      const row = el("tr");
      for (const name of heads) row.append(el("td", { "data-head": name }));
      return {
        element: row,
        update: (item) => {
          cells(item).forEach((cell, at) => {
            const place = row.children[at];
            if (!place) return;
            if (typeof cell === "string") text(place, cell);
            else place.replaceChildren(cell);
          });
        },
      };
    });
  }

  update(items: readonly T[]): void {
    this.#rows.update(items);
    this.#empty.hidden = items.length > 0;
  }
}
