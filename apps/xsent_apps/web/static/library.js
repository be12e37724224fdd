// The texts in the page, and their vectors as they are computed.

import { toPassages } from "./texts.js";
import { hasWords, joinedKeys } from "./xsent/words.js";

const MOST = 20_000; // most passages
const BLOCK = 10_000; // about how many characters become searchable at once

/**
 * @typedef {import("./texts.js").Passage & {document: Document, keys: string, encoded?: import("./model.js").Encoded}}
 *   Passage
 * @typedef {{source: import("./texts.js").Source, name: string, colour: number, passages: Passage[],
 *   columns?: string[], column?: number, id?: number, ending: AbortController}} Document
 */

/** Events: `listed` when the texts change, `changed` also when there are new vectors, `progress`, and `idle`. */
export class Library extends EventTarget {
  /** @type {Document[]} */
  documents = [];
  #total = 0; // passages to encode since the last rest
  #done = 0;

  /** @param {import("./model.js").Model} model */
  constructor(model) {
    super();
    this.model = model;
  }

  get passages() {
    return this.documents.flatMap((document) => document.passages);
  }

  /** The passages that have a vector. */
  get read() {
    return this.passages.filter(({ encoded }) => encoded);
  }

  /**
   * Adds a text and starts encoding it; throws an Error that explains why it cannot.
   * @param {import("./texts.js").Source} source @param {Document} [former] whose place it takes
   */
  add(source, former) {
    const { name, text } = source;
    const others = this.documents.filter((one) => one !== former);
    if (others.some((one) => one.name === name && one.source.text === text)) throw new Error(`${name} is already here.`);
    const { passages: read, ...table } = toPassages(source);
    const passages = read.map(withKeys).filter(({ keys }) => keys);
    if (!passages.length) throw new Error(`${name} contains no words.`);
    if (others.reduce((sum, one) => sum + one.passages.length, passages.length) > MOST) {
      const [here, most] = [passages.length, MOST].map((count) => count.toLocaleString("en"));
      throw new Error(`${name} has ${here} passages; the page holds at most ${most} in total. For more, use xsent index.`);
    }
    const used = new Set(others.map(({ colour }) => colour));
    let colour = former?.colour ?? 0;
    while (used.has(colour)) colour++;
    const document = { source, name, colour, passages, ...table, ending: new AbortController() };
    for (const passage of passages) passage.document = document;
    former?.ending.abort();
    this.documents.splice(former ? this.documents.indexOf(former) : this.documents.length, former ? 1 : 0, document);
    this.#emit("listed");
    this.#emit("changed");
    this.#encode(document);
  }

  /** @param {Document} document */
  remove(document) {
    document.ending.abort();
    this.documents.splice(this.documents.indexOf(document), 1);
    this.#emit("listed");
    this.#emit("changed");
    if (!this.#total) this.#emit("idle");
  }

  async #encode(document) {
    this.#total += document.passages.length;
    this.#emit("progress", { done: this.#done, total: this.#total });
    let left = document.passages.length;
    for (const block of inBlocks(document.passages)) {
      const encoded = await this.model.encode(
        block.map(({ context, text }) => (context ? `${context}: ${text}` : text)), // as xsent.search.writer
        {
          signal: document.ending.signal,
          onProgress: (done) => this.#emit("progress", { done: this.#done + done, total: this.#total }),
        },
      );
      if (!encoded) {
        this.#finish(left);
        return;
      }
      block.forEach((passage, i) => (passage.encoded = encoded[i]));
      left -= block.length;
      this.#finish(block.length);
      this.#emit("changed");
    }
  }

  #finish(count) {
    this.#done += count;
    if (this.#done < this.#total) return;
    this.#done = this.#total = 0;
    this.#emit("idle");
  }

  #emit(kind, detail) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }
}

/** A passage with the words of its text and context; it has none if the text has none. */
function withKeys(passage) {
  const keys = hasWords(passage.text) ? joinedKeys(passage.text) : "";
  return { ...passage, keys: keys && keys + joinedKeys(passage.context) };
}

/** Passages in blocks that take about equally long. @param {Passage[]} passages */
function inBlocks(passages) {
  const blocks = [];
  let characters = BLOCK;
  for (const passage of passages) {
    if (characters >= BLOCK) {
      blocks.push([]);
      characters = 0;
    }
    blocks.at(-1).push(passage);
    characters += passage.text.length;
  }
  return blocks;
}
