// The status line: the model, whether it computes the same here as elsewhere, and what was loaded.

import { make } from "./dom.js";

const NAMES = new Intl.DisplayNames("en", { type: "language" });

export class Facts {
  #list;
  #summary;
  #shown = new Map();

  /** @param {HTMLElement} list a <dl> @param {HTMLElement} summary in plain words */
  constructor(list, summary) {
    this.#list = list;
    this.#summary = summary;
  }

  model({ name, languages, fingerprint, dim, layers, golden, milliseconds, bytes, fetched }) {
    const where = fetched ? `${(fetched / 1e6).toFixed(1)} MB from its host` : `${(bytes / 1e6).toFixed(1)} MB from this device`;
    this.#put("Model", `${name}, ${layers} layers, ${dim} numbers`);
    this.#put("Languages", languages.map((code) => NAMES.of(code)).join(", "));
    this.#put("Fingerprint", fingerprint);
    this.#put("Check", verdict(golden));
    this.#put("Loaded", where);
    this.speed([milliseconds]);
    const known = new Intl.ListFormat("en").format(languages.map((code) => NAMES.of(code)));
    this.#summary.append(` The page reads ${known}.`);
    if (golden.worst > golden.allowed) this.#summary.append(" This browser computes differently; do not trust the results.");
  }

  /** @param {number[]} milliseconds of texts */
  speed(milliseconds) {
    const middle = [...milliseconds].sort((a, b) => a - b)[milliseconds.length >> 1];
    if (middle !== undefined) this.#put("Speed", `${middle.toFixed(middle < 10 ? 1 : 0)} ms per text`);
  }

  offline(ready) {
    this.#put("Offline", ready);
    if (ready.startsWith("✓")) this.#summary.append(" It also opens without a network.");
  }

  #put(name, value) {
    this.#shown.set(name, value);
    this.#list.replaceChildren(
      ...[...this.#shown].map(([term, text]) => make("div", {}, make("dt", {}, term), make("dd", {}, text))),
    );
  }
}

/** As in `xsent verify`: numbers are rounded to 8 bits on the way, so machines differ if one number rounds differently. */
function verdict({ total, near, worst, allowed }) {
  const close = `${near} of ${total} golden vectors within 0.001 of Python's`;
  if (near === total) return `✓ ${close}`;
  const furthest = `the largest difference is ${worst.toFixed(3)}, ${allowed.toFixed(3)} allowed`;
  return worst <= allowed ? `✓ ${close}, ${furthest}` : `✗ ${close}, ${furthest}: do not trust the results here`;
}
