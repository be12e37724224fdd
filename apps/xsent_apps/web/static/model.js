// The page's side of the model's thread.

const REMEMBERED = 50_000; // vectors of 1.5 kB

/** @typedef {{vector: Float32Array, windows: number, unknown: boolean, words?: import("./xsent/words.js").Word[]}} Encoded
 *   only a query has words */

export class Model extends EventTarget {
  #worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  #jobs = new Map();
  #texts = new Map(); // text -> Encoded
  #queries = new Map();
  #last = 0;
  /** @type {number[]} for the last texts */
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
   * Encodes texts, known ones at no cost; undefined if the signal aborted it.
   * @param {string[]} texts
   * @param {{urgent?: boolean, query?: boolean, signal?: AbortSignal, onProgress?: (done: number, total: number) => void}} options
   * @returns {Promise<Encoded[] | undefined>}
   */
  encode(texts, { urgent = false, query = false, signal, onProgress = () => {} } = {}) {
    const known = query ? this.#queries : this.#texts;
    const missing = [...new Set(texts)].filter((text) => !known.has(text));
    const answer = () => texts.map((text) => known.get(text));
    if (!missing.length) return Promise.resolve(signal?.aborted ? undefined : answer());
    const id = ++this.#last;
    return new Promise((resolve) => {
      const finish = (value) => {
        this.#jobs.delete(id);
        resolve(value);
      };
      this.#jobs.set(id, { texts: missing, known, left: missing.length, onProgress, done: () => finish(answer()) });
      signal?.addEventListener("abort", () => {
        if (!this.#jobs.has(id)) return; // it is done
        this.#worker.postMessage({ kind: "drop", id });
        finish(undefined);
      });
      this.#worker.postMessage({ kind: "encode", id, texts: missing, urgent, query });
    });
  }

  /** How rare each word of the texts is in its language, by the word's first key. @returns {Promise<Map<string, number>>} */
  rarities(texts) {
    return this.#ask({ kind: "rarities", texts });
  }

  /** How near the words of each text are to those of a query. @returns {Promise<number[]>} */
  nearness(query, texts) {
    return this.#ask({ kind: "nearness", query, texts });
  }

  #ask(question) {
    const id = ++this.#last;
    return new Promise((resolve) => {
      const done = (answer) => {
        this.#jobs.delete(id);
        resolve(answer);
      };
      this.#jobs.set(id, { done });
      this.#worker.postMessage({ ...question, id });
    });
  }

  #hear({ kind, ...rest }) {
    if (kind === "encoded") this.#take(rest);
    else if (kind === "answer") this.#jobs.get(rest.id).done(rest.answer);
    else this.#tell(kind, rest);
  }

  #take({ id, at, encoded, milliseconds }) {
    this.milliseconds = [...this.milliseconds.slice(-49), milliseconds];
    const job = this.#jobs.get(id);
    if (!job) return; // aborted in the meantime
    if (job.known.size >= REMEMBERED) job.known.delete(job.known.keys().next().value);
    job.known.set(job.texts[at], encoded);
    job.onProgress(job.texts.length - --job.left, job.texts.length);
    if (!job.left) job.done();
  }

  #tell(kind, detail) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }
}
