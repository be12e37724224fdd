// Which words of a sentence are nearest to a query: no word need be the same, since runs of words are compared as
// sentences are, by their vectors.

import { cosine } from "./model.js";

const LONG = 7; // words: shorter sentences are marked whole

const words = new Intl.Segmenter("en", { granularity: "word" });

/**
 * Where the nearest words of a sentence start and end; undefined for a short sentence.
 * @param {import("./model.js").Model} model @param {Float32Array} query
 * @param {import("./texts.js").Sentence} sentence @param {AbortSignal} signal
 */
export async function nearestPart(model, query, sentence, signal) {
  const runs = runsOf(sentence.text);
  const encoded = await model.encode(
    runs.map(({ start, end }) => sentence.text.slice(start, end)),
    { urgent: true, signal },
  );
  if (!encoded || !runs.length) return undefined;
  const scores = encoded.map(({ vector }) => cosine(query, vector));
  return runs[scores.indexOf(Math.max(...scores))];
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
    runs.push({ start: found[first].index, end: last.index + last.segment.length });
    if (first + size >= found.length) break;
  }
  return runs;
}
