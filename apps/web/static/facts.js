// The status line: what the model is, whether it computes here what it computes elsewhere, and what was loaded.

import { make } from "./dom.js";

const NAMES = new Intl.DisplayNames("en", { type: "language" });

export class Facts {
  #list;
  #shown = new Map();

  /** @param {HTMLElement} list a <dl> */
  constructor(list) {
    this.#list = list;
  }

  model({ name, languages, fingerprint, dim, layers, golden, milliseconds, bytes, fetched }) {
    const near = golden.near === golden.total;
    const worst = golden.worst.toExponential(0);
    const where = fetched ? `${(fetched / 1e6).toFixed(1)} MB from its host` : `${(bytes / 1e6).toFixed(1)} MB from this device`;
    this.#put("Model", `${name}, ${layers} layers, ${dim} numbers`);
    this.#put("Languages", languages.map((code) => NAMES.of(code)).join(", "));
    this.#put("Fingerprint", fingerprint);
    this.#put(
      "Check",
      `${near ? "✓ " : ""}${golden.near} of ${golden.total} golden vectors within 0.001 of Python's` +
        (near ? "" : ` (worst ${worst}): this browser computes otherwise, so scores may differ a little`),
    );
    this.#put("Loaded", where);
    this.speed([milliseconds]);
  }

  /** @param {number[]} milliseconds of sentences */
  speed(milliseconds) {
    const middle = [...milliseconds].sort((a, b) => a - b)[milliseconds.length >> 1];
    if (middle !== undefined) this.#put("Speed", `${middle.toFixed(middle < 10 ? 1 : 0)} ms a sentence`);
  }

  offline(ready) {
    this.#put("Offline", ready);
  }

  #put(name, value) {
    this.#shown.set(name, value);
    this.#list.replaceChildren(
      ...[...this.#shown].map(([term, text]) => make("div", {}, make("dt", {}, term), make("dd", {}, text))),
    );
  }
}
