// Words as a search compares them, as in xsent/words.py: different spellings of a word become equal.

import { findFractions, findNumbers } from "./numbers.js";

// Soft hyphens, zero-width spaces and joiners, bidirectional marks: FORMAT of xsent/clean.py.
const FORMAT =
  /[\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0001}-\u{e0fff}]/gu;
const SELECTORS = /[\ufe00-\ufe0f]/g; // of variants of a character
// Accents are removed, but not the voicing marks of kana nor the breve that makes й another letter than и.
const ACCENTS = /(?<!и)[\u0300-\u036f]/g;
const LETTERS = { æ: "ae", œ: "oe", ø: "o", ł: "l", đ: "d", ı: "i" };
const SPELLED = { ä: "ae", ö: "oe", ü: "ue", ø: "oe", å: "aa" }; // as people type them without the key

// Chinese and Japanese write no spaces: a run of one script is cut into pairs of characters. Words may be in either kana.
const KATAKANA = /[\u30a1-\u30f6\u30fd\u30fe]/g;
const SCRIPTS = ["\u3041-\u309fー", "\u30a1-\u30ff", "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u{20000}-\u{3ffff}々"];
const ALL = SCRIPTS.join("");
const WRITTEN = new RegExp(`[\\p{L}\\p{N}${ALL}][\\p{L}\\p{N}${ALL}\u0300-\u036f]*`, "gu"); // words of all scripts
const LETTER = `(?![${ALL}])[\\p{L}\\p{N}]`;
const OF_ONE_SCRIPT = new RegExp([...SCRIPTS.map((script) => `[${script}]+`), `${LETTER}(?:${LETTER}|[\u0300-\u036f])*`].join("|"), "gu");
const STARTS_IN_SCRIPT = new RegExp(`^[${ALL}]`, "u");
const NOT_ASCII = /[^\0-\x7f]/;

const MARKUP = /<!--[^]*?-->|<\/?[a-z][a-z0-9]*(?:\s[^<>]*|\/)?>|&(?:nbsp|amp|lt|gt|quot|hellip|[mn]dash|#160|#xa0);/gi;
// What programs write where a value is missing.
const NOTHING = [
  /^(?:n\s?\/\s?[ad]\.?|[nk]\.\s?a\.?|[(\[]?(?:null|undefined)[)\]]?|[(\[](?:none|blank|empty|deleted|removed)[)\]]|#n\/?a|#nv)$/i,
  /^(?:#[A-Z/0]+[!?]|NaN|nan|NA|None|\\N)$/,
];

const BEGINNING = 0.5; // weight of a word that only has a query word's beginning
const SHORTEST = 4; // fewest letters of a beginning
const ENDING = 3; // most letters of an ending
const MOST_WORDS = 32; // a longer query is a text in itself, not a search for words

/** @typedef {{keys: string[], rarity: number}} Word of a query */

/** @param {string} text */
export const removeFormat = (text) => text.replace(FORMAT, "");

/** The search keys of every word of a text; two words are equal if they share a key. @param {string} text */
export function* wordKeys(text) {
  yield* keysOfFolded(folding(text));
}

function* keysOfFolded(folded) {
  let end = 0;
  for (const number of wholeNumbers(folded)) {
    yield* writtenKeys(folded.slice(end, number.start));
    yield* number.words;
    end = number.end;
  }
  yield* writtenKeys(folded.slice(end));
}

function wholeNumbers(folded) {
  const whole = findNumbers(folded);
  const taken = whole.reduce((text, { start, end }) => text.fill(1, start, end), new Uint8Array(folded.length));
  return [...whole, ...findFractions(folded).filter(({ start, end }) => !taken.subarray(start, end).includes(1))].sort((a, b) => a.start - b.start);
}

function folding(text) {
  const folded = fold(removeFormat(text).replace(SELECTORS, ""));
  return NOT_ASCII.test(folded) ? fold(folded.normalize("NFKC")) : folded;
}

function* writtenKeys(folded) {
  for (const [written] of folded.matchAll(WRITTEN)) {
    if (!NOT_ASCII.test(written)) yield [written];
    else for (const [word] of written.matchAll(OF_ONE_SCRIPT)) yield* keysOf(word);
  }
}

function* keysOf(word) {
  if (!STARTS_IN_SCRIPT.test(word)) return yield [...new Set([word, translate(word, SPELLED)].map(withoutAccents))];
  const signs = [...word.replace(KATAKANA, (sign) => String.fromCharCode(sign.charCodeAt(0) - 0x60))];
  for (let at = 0; at < (signs.length - 1 || 1); at++) yield [signs.slice(at, at + 2).join("")];
}

/** Whether a text has words, as `has_words` of xsent/words.py: not just tags, or a sign for nothing. @param {string} text */
export function hasWords(text) {
  const plain = removeFormat(text.replace(MARKUP, " ")).trim();
  return joinedKeys(plain) !== "" && !NOTHING.some((signs) => signs.test(plain));
}

/** All keys of a text, of its numbers, and beside them, each between two spaces; none if it has no letter or digit. @param {string} text */
export function joinedKeys(text) {
  const folded = folding(text);
  const written = [...writtenKeys(folded)].flat();
  const known = new Set(written);
  return [...written, ...new Set([...keysOfFolded(folded)].flat().filter((key) => !known.has(key)))].map((key) => ` ${key} `).join("");
}

/** What a key shares with other forms of its word, as in xsent/words.py; empty if it is short or has a digit. */
export function beginning(key) {
  const letters = [...key];
  if (letters.length < SHORTEST || /\p{Nd}/u.test(key)) return "";
  return letters.slice(0, Math.max(SHORTEST, letters.length - ENDING)).join("");
}

/**
 * Score of the words that each passage shares with a query, from 0 to 1, as in `shared_words` of xsent/search/store.py:
 * all words score 1, fewer words less, the commoner they are. A word that matches only by its beginning counts half.
 * @param {Word[]} words of the query @param {{keys: string}[]} passages
 */
export function sharesOf(words, passages) {
  const shares = new Float64Array(passages.length);
  const telling = new Float64Array(passages.length); // the same, with each weight squared
  if (words.length > MOST_WORDS) return shares;
  const idf = (count) => Math.log1p((passages.length - count + 0.5) / (count + 0.5)); // inverse document frequency
  let whole = 0;
  for (const { keys, rarity } of words) {
    const starts = keys.map(beginning).filter(Boolean);
    const parts = passages.map((passage) => partOf(passage.keys, keys, starts));
    const weight = ((rarity * idf(Math.max(parts.filter(Boolean).length, 1))) / idf(1)) ** 2;
    whole += weight;
    for (const [i, part] of parts.entries()) {
      shares[i] += part * weight;
      telling[i] += part * weight ** 2;
    }
  }
  return shares.map((share, i) => Math.max((share / (whole || 1)) ** 4, telling[i] / (whole || 1)));
}

/** 1 if a word is among those of a passage, less if only its beginning is. */
function partOf(joined, keys, starts) {
  if (keys.some((key) => joined.includes(` ${key} `))) return 1;
  return starts.some((start) => joined.includes(` ${start}`)) ? BEGINNING : 0;
}

/** Without case, like Python's `casefold`: "ẞ" is "ss", and "ς" is "σ". */
export const fold = (text) => text.toLowerCase().toUpperCase().toLowerCase().replaceAll("ς", "σ");

const translate = (word, table) => word.replace(/[^\0-\x7f]/g, (letter) => table[letter] ?? letter);

/** A word without accents. */
export const withoutAccents = (word) => translate(word, LETTERS).normalize("NFD").replace(ACCENTS, "").normalize("NFC");
