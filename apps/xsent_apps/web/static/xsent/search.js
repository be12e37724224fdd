// Passages by meaning and by words, as in xsent/search/index.py.

import { hasWords, joinedKeys, sharesOf } from "./words.js";

const WORDS = 0.5; // bonus for all words of a query
const NEAR_WORDS = 0.25; // bonus for words that are as near as the same ones, in any language
export const MOST = 1 + WORDS + NEAR_WORDS; // score
const READ_AGAIN = 20; // best passages, whose words are compared with those of the query
export const CLOSE = 0.35; // a score that 1% of unrelated texts reach

/** Inner product: the cosine of vectors of length 1. @param {Float32Array} a @param {Float32Array} b */
export function cosine(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/** Scaled to length 1; zero stays. @param {Float32Array} vector */
export function unit(vector) {
  const norm = Math.hypot(...vector) || 1;
  return Float32Array.from(vector, (value) => value / norm);
}

/**
 * Passages best first, ties in order; the words of the query count, too.
 * @template {{keys: string, encoded: {vector: Float32Array}}} P
 * @param {P[]} passages @param {{vector: Float32Array, words: import("./words.js").Word[]}} query
 */
export function rank(passages, { vector, words }) {
  const shares = sharesOf(words, passages);
  const results = passages.map((passage, i) => ({ passage, score: cosine(vector, passage.encoded.vector) + WORDS * shares[i] }));
  return results.sort((a, b) => b.score - a.score);
}

/** The first results of `rank`, whose words are compared with those of the query; equal ones are all among them. */
export const toReadAgain = (results) => results.filter(({ score }) => score >= (results[READ_AGAIN - 1]?.score ?? -Infinity));

/**
 * The results of `rank` with near words, best first.
 * @template {{score: number}} R
 * @param {R[]} results @param {number[]} nearness of the words of the first ones to the query's
 */
export function withNearWords(results, nearness) {
  const added = (result, i) => (i < nearness.length ? { ...result, score: result.score + NEAR_WORDS * nearness[i] } : result);
  return results.map(added).sort((a, b) => b.score - a.score);
}

/** Texts in memory, with their vectors and words. */
export class SearchIndex {
  #encoder;
  #passages = [];

  /** @param {import("./encoder.js").Encoder} encoder */
  constructor(encoder) {
    this.#encoder = encoder;
  }

  /** Encodes texts and adds them; a text without letters and digits is never found. @param {Iterable<string>} texts */
  async add(texts) {
    for (const text of texts) {
      const encoded = await this.#encoder.read(text);
      this.#passages.push({ text, row: this.#passages.length, keys: hasWords(text) ? joinedKeys(text) : "", encoded });
    }
  }

  /** The nearest texts, best first. @param {string} query @param {{limit?: number}} options */
  async search(query, { limit = 10 } = {}) {
    const read = await this.#encoder.readQuery(query);
    if (!read.windows) return [];
    const found = rank(this.#passages.filter(({ keys }) => keys), read);
    const texts = toReadAgain(found).map(({ passage }) => passage.text);
    const ranked = withNearWords(found, this.#encoder.words.nearness(query, texts));
    return ranked.slice(0, limit).map(({ passage: { text, row }, score }) => ({ text, row, score, close: score >= CLOSE }));
  }
}
