// The page's end of the model's thread.

const REMEMBERED = 50_000; // vectors of 1.5 kB

/** @typedef {{vector: Float32Array, windows: number, unknown: boolean}} Encoded */

export class Model extends EventTarget {
  #worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  #jobs = new Map();
  #known = new Map(); // text -> Encoded
  #last = 0;
  /** @type {number[]} of the last sentences */
  milliseconds = [];

  constructor() {
    super();
    this.#worker.onmessage = ({ data }) => this.#hear(data);
    this.#worker.onerror = (event) => {
      this.#tell("failed", { message: event.message || "The model's thread could not be started." });
    };
  }

  /** Loads the model: events `progress`, then `ready` or `failed`. */
  open(list) {
    this.#worker.postMessage({ kind: "open", list });
  }

  /**
   * Encodes texts, those known already at no cost; undefined if the signal ended it before.
   * @param {string[]} texts
   * @param {{urgent?: boolean, signal?: AbortSignal, onProgress?: (done: number, total: number) => void}} options
   * @returns {Promise<Encoded[] | undefined>}
   */
  encode(texts, { urgent = false, signal, onProgress = () => {} } = {}) {
    const missing = [...new Set(texts)].filter((text) => !this.#known.has(text));
    const answer = () => texts.map((text) => this.#known.get(text));
    if (!missing.length) return Promise.resolve(signal?.aborted ? undefined : answer());
    const id = ++this.#last;
    return new Promise((resolve) => {
      const finish = (value) => {
        this.#jobs.delete(id);
        resolve(value);
      };
      this.#jobs.set(id, { texts: missing, left: missing.length, onProgress, done: () => finish(answer()) });
      signal?.addEventListener("abort", () => {
        this.#worker.postMessage({ kind: "drop", id });
        finish(undefined);
      });
      this.#worker.postMessage({ kind: "encode", id, texts: missing, urgent });
    });
  }

  #hear({ kind, ...rest }) {
    if (kind === "vector") this.#take(rest);
    else this.#tell(kind, rest);
  }

  #take({ id, at, vector, windows, unknown, milliseconds }) {
    this.milliseconds = [...this.milliseconds.slice(-49), milliseconds];
    const job = this.#jobs.get(id);
    if (!job) return; // given up meanwhile
    if (this.#known.size >= REMEMBERED) this.#known.delete(this.#known.keys().next().value);
    this.#known.set(job.texts[at], { vector, windows, unknown });
    job.onProgress(job.texts.length - --job.left, job.texts.length);
    if (!job.left) job.done();
  }

  #tell(kind, detail) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }
}

/** Inner product: the cosine of vectors of length 1. @param {Float32Array} a @param {Float32Array} b */
export function cosine(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}
