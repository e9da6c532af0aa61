// Line charts on a canvas, sharp on any screen, drawn only while visible.

import { SECONDS } from "./store";

export interface Line {
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
}

/** A canvas with lines over the last two minutes. */
export class Chart {
  readonly element: HTMLCanvasElement;
  #drawn: { lines: Line[]; scale: Scale } | null = null;
  #seen = false;
  readonly #watch: IntersectionObserver;

  constructor(label: string) {
    this.element = document.createElement("canvas");
    this.element.className = "chart";
    this.element.setAttribute("role", "img");
    this.element.setAttribute("aria-label", label);
    this.#watch = new IntersectionObserver((entries) => {
      this.#seen = entries.at(-1)?.isIntersecting ?? false;
      this.#paint();
    });
    this.#watch.observe(this.element);
  }

  draw(lines: Line[], scale: Scale): void {
    this.#drawn = { lines, scale };
    if (this.#seen) this.#paint();
  }

  gone(): void {
    this.#watch.disconnect();
  }

  #paint(): void {
    const context = this.element.getContext("2d");
    if (!context || !this.#drawn) return;
    const { clientWidth: width, clientHeight: height } = this.element;
    const ratio = window.devicePixelRatio || 1;
    if (this.element.width !== Math.round(width * ratio) || this.element.height !== Math.round(height * ratio)) {
      this.element.width = Math.round(width * ratio);
      this.element.height = Math.round(height * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const style = getComputedStyle(this.element);
    const { lines, scale } = this.#drawn;
    const y = (value: number) => height - 1 - (Math.min(value, scale.top) / (scale.top || 1)) * (height - 3);
    context.lineWidth = 1;
    context.strokeStyle = style.getPropertyValue("--rule");
    for (const part of [0.25, 0.5, 0.75]) {
      const at = Math.round(height * part) + 0.5;
      context.beginPath();
      context.moveTo(0, at);
      context.lineTo(width, at);
      context.stroke();
    }
    for (const line of lines) paintLine(context, line, style.getPropertyValue(line.colour), width, height, y);
    if (scale.mark !== null) {
      context.strokeStyle = style.getPropertyValue("--mark");
      context.setLineDash([5, 4]);
      context.beginPath();
      context.moveTo(0, y(scale.mark));
      context.lineTo(width, y(scale.mark));
      context.stroke();
      context.setLineDash([]);
    }
  }
}

function paintLine(
  context: CanvasRenderingContext2D,
  line: Line,
  colour: string,
  width: number,
  height: number,
  y: (value: number) => number,
): void {
  const { values } = line;
  if (values.length === 0) return;
  const x = (at: number) => width - ((values.length - 1 - at) * width) / (SECONDS - 1);
  context.beginPath();
  values.forEach((value, at) => (at === 0 ? context.moveTo(x(at), y(value)) : context.lineTo(x(at), y(value))));
  context.lineWidth = 1.75;
  context.lineJoin = "round";
  context.strokeStyle = colour;
  context.setLineDash(line.dashed ? [2, 3] : []);
  context.stroke();
  context.setLineDash([]);
  if (!line.fill) return;
  context.lineTo(x(values.length - 1), height);
  context.lineTo(x(0), height);
  context.closePath();
  context.globalAlpha = 0.18;
  context.fillStyle = colour;
  context.fill();
  context.globalAlpha = 1;
}
