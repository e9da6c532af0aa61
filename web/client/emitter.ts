// Events with types.

/** An object with named events. */
export class Emitter<Events extends object> {
  readonly #listeners = new Map<keyof Events, Set<(event: never) => void>>();

  /** Calls `listener` for each event of this name. Returns a function that ends it. */
  on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): () => void {
    const known = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, known.add(listener));
    return () => known.delete(listener);
  }

  /** Calls the listeners. An error of one does not keep others from the event. */
  protected emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
    for (const listener of this.#listeners.get(name) ?? []) {
      try {
        (listener as (event: Events[Name]) => void)(event);
      } catch (error) {
        console.error(error);
      }
    }
  }
}
