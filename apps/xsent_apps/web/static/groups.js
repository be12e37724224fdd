// Groups of texts on one subject, each with a name, as xsent/mining/clusters.py and names.py find them.

import { cut } from "./dom.js";
import { beginning, wordKeys } from "./xsent/words.js";

const THRESHOLD = 0.05; // mean cosine, after subtracting the background, from which two groups are merged
const SMALLEST = 5; // texts of a group
const NEAR = 0.5; // of the way from the mean cosine to 1: two texts with a higher cosine say nearly the same
const LEAST = 0.2; // below this cosine to the centre a text belongs to no group
const EQUAL = 1e-3; // a vector equals the background if less than this length is left after subtracting it
const FEW = 10; // texts at which a language's own background counts half
const WORDS = 4; // per name
const SEVERAL = 2; // texts that a word of a name must be in, if any word is
const SHORTEST = 3; // fewest letters of a word
const ENGLISH = 0.5; // English texts per text in the most frequent language, from which the name is in English
const LETTERS = 28; // most letters shown of a central text
const ASIAN = "\u3040"; // sorts before all Chinese and Japanese characters
// Words; in Chinese and Japanese, which have no spaces, runs of two or more characters without hiragana.
const WORD =
  /[\u30a1-\u30fa\u30fc]{2,}|[\u3400-\u4dbf\u4e00-\u9fff々]{2,}|(?:(?![\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff々])\p{L})+/gu;

/**
 * Vectors minus the background of all texts and of their languages, scaled back to length 1.
 * @param {Float32Array} vectors [n * dim], rows of length 1 @param {number} dim @param {Float32Array} cosines of them
 * @param {(string | null)[]} languages of the texts; null is a text without words, whose vector becomes zero
 */
export function withoutBackground(vectors, dim, cosines, languages) {
  const rows = [...languages.keys()].filter((i) => languages[i] !== null);
  const common = backgroundOf(rows);
  const backgrounds = new Map([["", common]]);
  for (const language of new Set(rows.map((i) => languages[i]))) {
    if (!language) continue;
    const own = rows.filter((i) => languages[i] === language);
    const background = backgroundOf(own);
    const share = own.length / (own.length + FEW);
    backgrounds.set(language, common.map((value, d) => value + share * (background[d] - value)));
  }
  const rest = new Float32Array(vectors.length);
  for (const i of rows) {
    const background = backgrounds.get(languages[i]);
    const left = background.map((value, d) => vectors[i * dim + d] - value);
    const length = Math.hypot(...left);
    if (length >= EQUAL) rest.set(left.map((value) => value / length), i * dim);
  }
  return rest;

  /** The mean of rows, weighting each subject equally, however many texts it has. */
  function backgroundOf(rows) {
    const near = (i, limit) => rows.reduce((count, j) => count + (cosines[i * languages.length + j] > limit), 0);
    const total = rows.reduce((sum, i) => rows.reduce((part, j) => part + cosines[i * languages.length + j], sum), 0);
    const limit = NEAR + (1 - NEAR) * (total / rows.length ** 2);
    const weights = rows.map((i) => 1 / Math.max(1, near(i, limit)));
    const whole = weights.reduce((sum, weight) => sum + weight, 0);
    const mean = new Float64Array(dim);
    for (const [at, i] of rows.entries()) {
      for (let d = 0; d < dim; d++) mean[d] += (weights[at] / whole) * vectors[i * dim + d];
    }
    return mean;
  }
}

/**
 * Each text's group, numbered by size, where -1 is none; its cosine to the nearest centre; and for each group the text
 * nearest to its centre.
 * @param {Float32Array} cosines [n * n] of all texts, without the background @param {number} n
 */
export function groupsOf(cosines, n) {
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
  return { labels, central, cosines: highest };
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
      done.push(members[last]); // no other is near enough, nor will be
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
 * For each group the words of one language that set it apart, as in tf-idf; its central text if it has none.
 * @param {{labels: number[], central: number[], cosines: number[]}} groups @param {string[]} texts
 * @param {import("./languages.js").Languages} languages @param {Map<string, number>} rarities of words by their keys;
 *   a word without one is everywhere
 */
export function namesOf({ labels, central, cosines }, texts, languages, rarities) {
  const of = texts.map((text) => languages.of(text));
  const words = texts.map((text) => tellingWords(text, languages));
  return central.map((middle, number) => {
    const members = [...labels.keys()].filter((i) => labels[i] === number);
    const language = languageOfName(members.map((i) => of[i]));
    const everywhere = [...labels.keys()].filter((i) => of[i] === language);
    const own = members.filter((i) => of[i] === language);
    const found = [...counts(own.map((i) => words[i].keys()))];
    const shared = found.filter(([, count]) => count >= SEVERAL);
    const total = own.reduce((sum, i) => sum + cosines[i], 0);
    const weights = (shared.length ? shared : found).map(([key]) => {
      const share = own.reduce((sum, i) => sum + (words[i].has(key) ? cosines[i] / total : 0), 0);
      const whole = everywhere.reduce((count, i) => count + words[i].has(key), 0) / everywhere.length;
      const rarity = key > ASIAN ? 1 : (rarities.get(key) ?? 0);
      return [key, Math.sqrt(rarity) * share * Math.log(share / whole) * Math.log(1 / whole)];
    });
    const best = [];
    for (const [key] of weights.sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))) {
      if (best.length < WORDS && !best.some((other) => same(key, other))) best.push(key);
    }
    return best.length ? best.map((key) => spelled(own.map((i) => words[i].get(key)))).join(", ") : cut(texts[middle], LETTERS);
  });
}

/** The words of a text that may name a group, as spelled in the text, by their keys. */
function tellingWords(text, languages) {
  const found = new Map();
  for (const [word] of text.matchAll(WORD)) {
    const key = word > ASIAN ? word : (wordKeys(word).next().value?.[0] ?? "");
    if ([...key].length < (word > ASIAN ? 1 : SHORTEST) || languages.have(word)) continue;
    if (!found.has(key)) found.set(key, word);
  }
  return found;
}

/** The most frequent language, or English. @param {string[]} languages */
function languageOfName(languages) {
  const found = counts(languages.map((one) => [one]));
  const [first, most] = [...found].sort((a, b) => b[1] - a[1])[0];
  return (found.get("en") ?? 0) >= ENGLISH * most ? "en" : first;
}

/** Whether two keys may be forms of one word: one has the other's beginning. */
function same(one, other) {
  const starts = [beginning(one), beginning(other)];
  return starts.every(Boolean) && (one.startsWith(starts[1]) || other.startsWith(starts[0]));
}

function counts(sets) {
  const found = new Map();
  for (const set of sets) for (const key of set) found.set(key, (found.get(key) ?? 0) + 1);
  return found;
}

/** A word as most texts spell it. */
const spelled = (spellings) => [...counts([spellings.filter(Boolean)])].sort((a, b) => b[1] - a[1])[0][0];
