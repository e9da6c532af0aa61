// Line charts on a canvas with axes, units and the values under the pointer, drawn only while visible. All charts that
// have changed are painted together, after all other changes of the page: reading a size or a style between changes
// would lay out the page once per chart.

import { onResize } from "./dom";

/** The kept seconds of charts. */
export const SECONDS_MAX = 600;
/** The displayed time range, in seconds. */
export const range = { seconds: 120 };

/** The margins around the lines in pixels; the left one grows with the labels of the axis. */
const [LEFT_MIN, BOTTOM, TOP, RIGHT] = [50, 17, 6, 2];
/** The distance of labels from the edge and from the axis in pixels. */
const GAP = 5;

export interface Line {
  /** Its name in the values under the pointer. */
  name: string;
  values: number[];
  /** A custom property of the style sheet. */
  colour: string;
  fill?: boolean;
  dashed?: boolean;
}

export interface Scale {
  top: number;
  /** A reference level: a capacity or a delay bound. */
  mark: number | null;
  /** The time range in seconds, if it is not the one of the page. */
  seconds?: number;
}

interface Area {
  left: number;
  width: number;
  height: number;
  seconds: number;
  y(value: number): number;
  x(ago: number): number;
}

/** Returns the values of a time range, the displayed one by default. */
export function recent<T>(values: readonly T[], seconds = range.seconds): readonly T[] {
  return values.slice(-seconds);
}

/** The charts to paint at the end of the present event. */
const waiting = new Set<() => void>();

function atEnd(paint: () => void): void {
  if (waiting.size === 0) {
    queueMicrotask(() => {
      const all = [...waiting];
      waiting.clear();
      for (const one of all) one();
    });
  }
  waiting.add(paint);
}

/** A canvas with lines over the displayed time range. */
export class Chart {
  readonly element: HTMLCanvasElement;
  #drawn: { lines: Line[]; scale: Scale } | null = null;
  #seen = false;
  #pointer: number | null = null;
  #size = { width: 0, height: 0 };
  readonly #watch: IntersectionObserver;
  readonly #unwatch: () => void;
  readonly #painter = () => this.#paint();

  constructor(label: string, private readonly unit: (value: number) => string) {
    this.element = document.createElement("canvas");
    this.element.className = "chart";
    this.element.setAttribute("role", "img");
    this.element.setAttribute("aria-label", label);
    this.#watch = new IntersectionObserver((entries) => {
      this.#seen = entries.at(-1)?.isIntersecting ?? false;
      this.#later();
    });
    this.#watch.observe(this.element);
    this.#unwatch = onResize(this.element, (size) => {
      this.#size = size;
      this.#later();
    });
    this.element.addEventListener("pointermove", (event) => this.#point(event.offsetX));
    this.element.addEventListener("pointerleave", () => this.#point(null));
  }

  draw(lines: Line[], scale: Scale): void {
    this.#drawn = { lines, scale };
    this.#later();
  }

  gone(): void {
    this.#watch.disconnect();
    this.#unwatch();
    waiting.delete(this.#painter);
  }

  #point(x: number | null): void {
    this.#pointer = x;
    this.#later();
  }

  #later(): void {
    if (this.#seen) atEnd(this.#painter);
  }

  #paint(): void {
    const { width, height } = this.#size;
    const context = this.element.getContext("2d");
    if (!context || !this.#drawn || width === 0 || height === 0) return;
    const ratio = window.devicePixelRatio || 1;
    if (this.element.width !== Math.round(width * ratio) || this.element.height !== Math.round(height * ratio)) {
      this.element.width = Math.round(width * ratio);
      this.element.height = Math.round(height * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const style = getComputedStyle(this.element);
    const { lines, scale } = this.#drawn;
    const seconds = scale.seconds ?? range.seconds;
    context.font = `11px ${style.fontFamily}`;
    const labels = [scale.top / 2, scale.top].map((value) => context.measureText(this.unit(value)).width);
    const left = Math.max(LEFT_MIN, Math.ceil(Math.max(...labels)) + 2 * GAP);
    const [inner, high] = [width - left - RIGHT, height - TOP - BOTTOM];
    const area: Area = {
      left, width, height, seconds,
      y: (value) => TOP + high - (Math.min(value, scale.top) / (scale.top || 1)) * high,
      x: (ago) => left + inner - (ago * inner) / (seconds - 1),
    };
    this.#axes(context, style, area, scale);
    context.save();
    context.beginPath();
    context.rect(left, 0, inner + RIGHT, TOP + high + 1);
    context.clip();
    for (const line of lines) paintLine(context, line, style.getPropertyValue(line.colour), area);
    if (scale.mark !== null) {
      context.strokeStyle = style.getPropertyValue("--mark");
      context.setLineDash([5, 4]);
      stroke(context, left, area.y(scale.mark), width, area.y(scale.mark));
      context.setLineDash([]);
    }
    context.restore();
    if (this.#pointer !== null) this.#values(context, style, area, lines, this.#pointer);
  }

  #axes(context: CanvasRenderingContext2D, style: CSSStyleDeclaration, { left, width, height, seconds, y }: Area, scale: Scale): void {
    context.lineWidth = 1;
    context.strokeStyle = style.getPropertyValue("--rule");
    context.fillStyle = style.getPropertyValue("--soft");
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const part of [0, 0.5, 1]) {
      const at = Math.round(y(scale.top * part)) + 0.5;
      stroke(context, left, at, width, at);
      context.fillText(part === 0 ? "0" : this.unit(scale.top * part), left - GAP, Math.max(at, 6));
    }
    const first = seconds % 60 === 0 ? `${seconds / 60} min ago` : `${seconds} s ago`;
    context.textBaseline = "bottom";
    context.textAlign = "left";
    context.fillText(first, left, height);
    context.textAlign = "right";
    context.fillText("now", width - RIGHT, height);
  }

  /** Shows the values at the pointer. */
  #values(context: CanvasRenderingContext2D, style: CSSStyleDeclaration, area: Area, lines: Line[], pointer: number): void {
    const { left: edge, width, height, seconds } = area;
    const ago = Math.round(((width - RIGHT - pointer) * (seconds - 1)) / (width - edge - RIGHT));
    if (ago < 0 || ago >= seconds) return;
    const readings = lines.flatMap(({ name, values }) => {
      const value = values[values.length - 1 - ago];
      return value === undefined ? [] : [`${name} ${this.unit(value)}`];
    });
    if (readings.length === 0) return;
    context.strokeStyle = style.getPropertyValue("--mark");
    stroke(context, area.x(ago), TOP, area.x(ago), height - BOTTOM);
    const text = readings.join(" · ");
    const wide = context.measureText(text).width + 12;
    const left = Math.min(Math.max(area.x(ago) - wide / 2, 0), Math.max(0, width - wide));
    context.fillStyle = style.getPropertyValue("--panel");
    context.fillRect(left, TOP, wide, 18);
    context.strokeRect(left, TOP, wide, 18);
    context.fillStyle = style.getPropertyValue("--ink");
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillText(text, left + 6, TOP + 9.5);
  }
}

function stroke(context: CanvasRenderingContext2D, x1: number, y1: number, x2: number, y2: number): void {
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}

function paintLine(context: CanvasRenderingContext2D, line: Line, colour: string, { height, seconds, x, y }: Area): void {
  const values = line.values.slice(-seconds);
  if (values.length === 0) return;
  const place = (at: number) => x(values.length - 1 - at);
  context.beginPath();
  values.forEach((value, at) => (at === 0 ? context.moveTo(place(at), y(value)) : context.lineTo(place(at), y(value))));
  context.lineWidth = 1.75;
  context.lineJoin = "round";
  context.strokeStyle = colour;
  context.setLineDash(line.dashed ? [2, 3] : []);
  context.stroke();
  context.setLineDash([]);
  if (!line.fill) return;
  context.lineTo(place(values.length - 1), height - BOTTOM);
  context.lineTo(place(0), height - BOTTOM);
  context.closePath();
  context.globalAlpha = 0.18;
  context.fillStyle = colour;
  context.fill();
  context.globalAlpha = 1;
}
