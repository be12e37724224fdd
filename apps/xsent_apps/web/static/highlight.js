// Finds the sentence of a passage, and the words in it, that are nearest to a query. No word has to match: sentences and
// runs of words are compared by their vectors.

import { cosine } from "./xsent/search.js";
import { toSentences } from "./texts.js";

const LONG = 7; // words; shorter sentences are marked as a whole

const words = new Intl.Segmenter("en", { granularity: "word" });

/**
 * The nearest sentence of a passage; undefined if the signal aborted it.
 * @param {import("./model.js").Model} model @param {Float32Array} query @param {string} text @param {AbortSignal} signal
 */
export async function nearestSentence(model, query, text, signal) {
  const sentences = toSentences(text);
  return sentences.length > 1 ? nearest(model, query, sentences, signal) : sentences[0];
}

/**
 * Where the nearest words of a sentence start and end; undefined for a short sentence.
 * @param {import("./model.js").Model} model @param {Float32Array} query
 * @param {import("./texts.js").Sentence} sentence @param {AbortSignal} signal
 */
export async function nearestPart(model, query, sentence, signal) {
  return nearest(model, query, runsOf(sentence.text), signal);
}

/** The nearest one of several pieces of text. */
async function nearest(model, query, pieces, signal) {
  const encoded = await model.encode(
    pieces.map(({ text }) => text),
    { urgent: true, signal },
  );
  if (!encoded) return undefined;
  const scores = encoded.map(({ vector }) => cosine(query, vector));
  return pieces[scores.indexOf(Math.max(...scores))];
}

/** Overlapping runs of words, each about a third of the sentence. @param {string} text */
function runsOf(text) {
  const found = [...words.segment(text)].filter(({ isWordLike }) => isWordLike);
  if (found.length < LONG) return [];
  const size = Math.min(8, Math.max(3, Math.ceil(found.length / 3)));
  const step = Math.ceil(size / 2);
  const runs = [];
  for (let first = 0; first < found.length; first += step) {
    const last = found[Math.min(first + size, found.length) - 1];
    const [start, end] = [found[first].index, last.index + last.segment.length];
    runs.push({ start, end, text: text.slice(start, end) });
    if (first + size >= found.length) break;
  }
  return runs;
}
