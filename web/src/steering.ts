// The commands of the operator: by a stick on the screen, keys, or a gamepad.

/** A command: forward and to the left, each -1 to 1. */
export interface Command {
  forward: number;
  left: number;
}

const STILL: Command = { forward: 0, left: 0 };
/** A gamepad's stick rests within this of its middle. */
const DEAD_ZONE = 0.12;
const KEYS: Record<string, Command> = {
  KeyW: { forward: 1, left: 0 },
  ArrowUp: { forward: 1, left: 0 },
  KeyS: { forward: -1, left: 0 },
  ArrowDown: { forward: -1, left: 0 },
  KeyA: { forward: 0, left: 1 },
  ArrowLeft: { forward: 0, left: 1 },
  KeyD: { forward: 0, left: -1 },
  ArrowRight: { forward: 0, left: -1 },
};

const limited = (value: number) => Math.max(-1, Math.min(1, value));

/** The stick, the keys and the gamepad of the operator. */
export class Steering {
  readonly #pad: HTMLElement;
  readonly #stick: HTMLElement;
  readonly #held = new Set<string>();
  #dragged = STILL;
  /** The pointer that holds the stick. */
  #pointer: number | undefined;

  constructor(pad: HTMLElement, stick: HTMLElement) {
    [this.#pad, this.#stick] = [pad, stick];
    pad.addEventListener("pointerdown", (event) => {
      if (this.#pointer !== undefined) return;
      this.#pointer = event.pointerId;
      pad.setPointerCapture(event.pointerId);
      this.#drag(event);
    });
    pad.addEventListener("pointermove", (event) => { if (event.pointerId === this.#pointer) this.#drag(event); });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"] as const) {
      pad.addEventListener(end, (event) => { if (event.pointerId === this.#pointer) this.release(); });
    }
    addEventListener("keydown", (event) => {
      if (event.code in KEYS && !(event.target instanceof HTMLSelectElement)) {
        this.#held.add(event.code);
        event.preventDefault();
      }
    });
    addEventListener("keyup", (event) => this.#held.delete(event.code));
    // A key that is released in another window is never seen here.
    addEventListener("blur", () => this.release());
  }

  /** Lets go of everything. */
  release(): void {
    this.#pointer = undefined;
    this.#dragged = STILL;
    this.#held.clear();
  }

  /** Returns the present command, and shows it. */
  read(): Command {
    const keys = [...this.#held].map((code) => KEYS[code] ?? STILL);
    const pad = navigator.getGamepads?.().find((one) => one?.connected);
    const axis = (index: number) => {
      const value = pad?.axes[index] ?? 0;
      return Math.abs(value) < DEAD_ZONE ? 0 : value;
    };
    const all = [this.#dragged, { forward: -axis(1), left: -axis(0) }, ...keys];
    const command = {
      forward: limited(all.reduce((sum, { forward }) => sum + forward, 0)),
      left: limited(all.reduce((sum, { left }) => sum + left, 0)),
    };
    this.#stick.style.transform = `translate(${(-command.left * 100).toFixed(0)}%, ${(-command.forward * 100).toFixed(0)}%)`;
    return command;
  }

  #drag({ clientX, clientY }: PointerEvent): void {
    const { left, top, width, height } = this.#pad.getBoundingClientRect();
    const [x, y] = [(clientX - left) / width - 0.5, (clientY - top) / height - 0.5];
    // The edge of the pad is the whole speed.
    this.#dragged = { forward: limited(-y * 2.5), left: limited(-x * 2.5) };
  }
}
