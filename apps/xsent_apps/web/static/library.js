// The texts in the page, and their vectors as they come.

import { toPassages } from "./texts.js";

const MOST = 20_000; // sentences
const BLOCK = 10_000; // characters, about, that become searchable together

/** @typedef {import("./texts.js").Passage & {document: Document}} Passage */
/** @typedef {{name: string, text: string, colour: number, passages: Passage[], sentences: number, ending: AbortController}} Document */

/** Events: `changed` when there are other texts or more vectors, `progress`, and `idle` once all have theirs. */
export class Library extends EventTarget {
  /** @type {Document[]} */
  documents = [];
  #total = 0; // sentences to encode since the last rest
  #done = 0;

  /** @param {import("./model.js").Model} model */
  constructor(model) {
    super();
    this.model = model;
  }

  get passages() {
    return this.documents.flatMap((document) => document.passages);
  }

  /** Sentences that have a vector, each with its passage. */
  get encoded() {
    return this.passages.flatMap((passage) =>
      passage.sentences.filter((sentence) => sentence.encoded).map((sentence) => ({ passage, sentence })),
    );
  }

  get sentences() {
    return this.documents.reduce((sum, document) => sum + document.sentences, 0);
  }

  /** Takes a text in and has it encoded; an Error says why not. @param {string} name @param {string} text */
  add(name, text) {
    if (this.documents.some((one) => one.name === name && one.text === text)) throw new Error(`${name} is here already.`);
    const passages = toPassages(text);
    const sentences = passages.reduce((sum, passage) => sum + passage.sentences.length, 0);
    if (!sentences) throw new Error(`${name} has no words in it.`);
    if (this.sentences + sentences > MOST) {
      const [here, most] = [sentences, MOST].map((count) => count.toLocaleString("en"));
      throw new Error(`${name} has ${here} sentences; the page holds ${most} in all. For more, use xsent index.`);
    }
    const used = new Set(this.documents.map(({ colour }) => colour));
    let colour = 0;
    while (used.has(colour)) colour++;
    const document = { name, text, colour, passages, sentences, ending: new AbortController() };
    for (const passage of passages) passage.document = document;
    this.documents.push(document);
    this.#say("changed");
    this.#encode(document);
  }

  /** @param {Document} document */
  remove(document) {
    document.ending.abort();
    this.documents.splice(this.documents.indexOf(document), 1);
    this.#say("changed");
    if (!this.#total) this.#say("idle");
  }

  async #encode(document) {
    const sentences = document.passages.flatMap((passage) => passage.sentences);
    this.#total += sentences.length;
    this.#say("progress", { done: this.#done, total: this.#total });
    let left = sentences.length;
    for (const block of inBlocks(sentences)) {
      const encoded = await this.model.encode(
        block.map(({ text }) => text),
        {
          signal: document.ending.signal,
          onProgress: (done) => this.#say("progress", { done: this.#done + done, total: this.#total }),
        },
      );
      if (!encoded) {
        this.#finish(left);
        return;
      }
      block.forEach((sentence, i) => (sentence.encoded = encoded[i]));
      left -= block.length;
      this.#finish(block.length);
      this.#say("changed");
    }
  }

  #finish(count) {
    this.#done += count;
    if (this.#done < this.#total) return;
    this.#done = this.#total = 0;
    this.#say("idle");
  }

  #say(kind, detail) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }
}

/** Sentences in blocks that take about as long as each other. @param {import("./texts.js").Sentence[]} sentences */
function inBlocks(sentences) {
  const blocks = [];
  let characters = BLOCK;
  for (const sentence of sentences) {
    if (characters >= BLOCK) {
      blocks.push([]);
      characters = 0;
    }
    blocks.at(-1).push(sentence);
    characters += sentence.text.length;
  }
  return blocks;
}
