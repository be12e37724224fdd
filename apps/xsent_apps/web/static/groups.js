// Groups of texts on one subject, each with a name, as xsent/mining/clusters.py finds them.

import { cut } from "./dom.js";
import { wordKeys } from "./words.js";

const THRESHOLD = 0.05; // mean cosine, without the background, from which two groups are one
const SMALLEST = 5; // texts
const NEAR = 0.5; // of the way from the mean cosine to 1: two texts whose cosine is higher say about the same
const LEAST = 0.2; // cosine to the centre below which a text belongs to no group
const WORDS = 4; // of a name
const SEVERAL = 3; // texts that share a word of a name
const LETTERS = 28; // of a central text
const ASIAN = "\u3040"; // before all keys of Chinese and Japanese, which are pairs of characters

/**
 * Numbers of the texts' groups, the largest first, where -1 is none; and for each group the text nearest to its centre.
 * @param {Float32Array} cosines [n * n] of all texts; it is overwritten @param {number} n
 */
export function groupsOf(cosines, n) {
  takeOffBackground(cosines, n);
  const linked = link(cosines.slice(), n).filter((members) => members.length >= SMALLEST);
  const toCentres = linked.map((members) => {
    const sums = Float64Array.from({ length: n }, (_, i) => members.reduce((sum, j) => sum + cosines[i * n + j], 0));
    const norm = Math.sqrt(members.reduce((sum, i) => sum + sums[i], 0));
    return sums.map((sum) => sum / norm);
  });
  const highest = Array.from({ length: n }, (_, i) => Math.max(...toCentres.map((one) => one[i])));
  const nearest = highest.map((score, i) => (score < LEAST ? -1 : toCentres.findIndex((one) => one[i] === score)));
  const members = linked.map((_, k) => [...nearest.keys()].filter((i) => nearest[i] === k));
  const kept = members.filter((one) => one.length >= SMALLEST).sort((a, b) => b.length - a.length || a[0] - b[0]);
  const labels = new Array(n).fill(-1);
  kept.forEach((one, number) => one.forEach((i) => (labels[i] = number)));
  const central = kept.map((one) => one.reduce((best, i) => (highest[i] > highest[best] ? i : best)));
  return { labels, central };
}

/** Makes cosines those of vectors without the mean, in which each subject has the same weight, however many texts it has. */
function takeOffBackground(cosines, n) {
  const common = cosines.reduce((sum, value) => sum + value, 0) / n ** 2;
  const row = (i) => cosines.subarray(i * n, (i + 1) * n);
  const weights = Array.from({ length: n }, (_, i) => {
    return 1 / Math.max(1, row(i).reduce((count, value) => count + (value > common + NEAR * (1 - common)), 0));
  });
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const toMean = weights.map((_, i) => row(i).reduce((sum, value, j) => sum + weights[j] * value, 0) / total);
  const mean = toMean.reduce((sum, value, i) => sum + weights[i] * value, 0) / total; // its length, squared
  const norms = weights.map((_, i) => Math.sqrt(Math.max(0, cosines[i * n + i] - 2 * toMean[i] + mean)));
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) {
      const rest = cosines[i * n + j] - toMean[i] - toMean[j] + mean;
      cosines[i * n + j] = Math.min(norms[i], norms[j]) < 1e-3 ? 0 : rest / (norms[i] * norms[j]);
    }
  }
}

/** Average linkage, by chains of nearest neighbours (Murtagh 1983): groups whose mean cosine is over the threshold. */
function link(cosines, n) {
  const members = Array.from({ length: n }, (_, i) => [i]);
  const left = new Set(members.keys());
  const [done, chain] = [[], []];
  while (left.size) {
    const last = chain.at(-1) ?? left.values().next().value;
    if (!chain.length) chain.push(last);
    let [best, cosine] = [chain.at(-2) ?? -1, chain.length > 1 ? cosines[last * n + chain.at(-2)] : THRESHOLD];
    for (const other of left) if (other !== last && cosines[last * n + other] > cosine) [best, cosine] = [other, cosines[last * n + other]];
    if (best < 0) {
      done.push(members[last]); // no other is near, nor will be
      left.delete(chain.pop());
    } else if (best !== chain.at(-2)) chain.push(best);
    else merge(chain.pop(), chain.pop());
  }
  return done;

  function merge(one, other) {
    const [a, b] = [members[one].length, members[other].length];
    left.delete(other);
    for (const i of left) {
      const mean = (a * cosines[i * n + one] + b * cosines[i * n + other]) / (a + b);
      cosines[i * n + one] = cosines[one * n + i] = mean;
    }
    members[one] = members[one].concat(members[other]);
  }
}

/**
 * For each group the words that set it apart, as in tf-idf, or its central text where several texts share no such words.
 * @param {{labels: number[], central: number[]}} groups @param {string[]} texts
 * @param {Map<string, number>} rarities of the words in their languages; words without one are everywhere
 */
export function namesOf({ labels, central }, texts, rarities) {
  const keys = texts.map((text) => new Set(Array.from(wordKeys(text), ([key]) => key).filter(isTelling)));
  const everywhere = counts(keys);
  return central.map((middle, number) => {
    const members = [...labels.keys()].filter((i) => labels[i] === number);
    const shared = [...counts(members.map((i) => keys[i]))].filter(([, count]) => count >= SEVERAL);
    const weights = shared.map(([key, count]) => {
      const [share, whole] = [count / members.length, everywhere.get(key) / texts.length];
      return [key, Math.sqrt(rarities.get(key) ?? 0) * share * Math.log(share / whole) * Math.log(1 / whole)];
    });
    const best = weights.sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, WORDS);
    if (best.length < 2) return cut(texts[middle], LETTERS);
    const inWords = members.flatMap((i) => texts[i].match(/\p{L}+/gu) ?? []);
    return best.map(([key]) => (key > ASIAN ? key : spelled(key, inWords))).join(", ");
  });
}

const isTelling = (key) => (key.length > 2 || key > ASIAN) && !/^\p{Nd}+$/u.test(key);

function counts(sets) {
  const found = new Map();
  for (const set of sets) for (const key of set) found.set(key, (found.get(key) ?? 0) + 1);
  return found;
}

/** A word as most texts spell it. */
function spelled(key, words) {
  const spellings = counts(words.filter((word) => wordKeys(word).next().value?.[0] === key).map((word) => [word]));
  return [...spellings].sort((a, b) => b[1] - a[1])[0]?.[0] ?? key;
}
