// Words as a search compares them, as in xsent/words.py: spellings of one word become equal.

// Soft hyphens, zero-width spaces and joiners, marks of order and direction: FORMAT of xsent/clean.py.
const FORMAT =
  /[\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0001}-\u{e0fff}]/gu;
const SELECTORS = /[\ufe00-\ufe0f]/g; // of variants of a character
// Accents go, but neither the voicing marks of kana nor the breve that makes another letter of и.
const ACCENTS = /(?<!и)[\u0300-\u036f]/g;
const LETTERS = { æ: "ae", œ: "oe", ø: "o", ł: "l", đ: "d", ı: "i" };
const SPELLED = { ä: "ae", ö: "oe", ü: "ue", ø: "oe", å: "aa" }; // as people without the key type

// Chinese and Japanese write no spaces: a run of one script is cut into pairs of characters.
const SCRIPTS = ["\u3041-\u309f", "\u30a1-\u30ff", "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u{20000}-\u{3ffff}々"];
const ALL = SCRIPTS.join("");
const WRITTEN = new RegExp(`[\\p{L}\\p{N}${ALL}][\\p{L}\\p{N}${ALL}\u0300-\u036f]*`, "gu"); // words of all scripts
const LETTER = `(?![${ALL}])[\\p{L}\\p{N}]`;
const OF_ONE_SCRIPT = new RegExp([...SCRIPTS.map((script) => `[${script}]+`), `${LETTER}(?:${LETTER}|[\u0300-\u036f])*`].join("|"), "gu");
const STARTS_IN_SCRIPT = new RegExp(`^[${ALL}]`, "u");
const NOT_ASCII = /[^\0-\x7f]/;

const MOST_WORDS = 32; // a longer query is a text of its own, not a search for words

/** @param {string} text */
export const removeFormat = (text) => text.replace(FORMAT, "");

/** For every word of a text the keys under which it is found; two words are equal if they share one. @param {string} text */
export function* wordKeys(text) {
  let folded = fold(removeFormat(text).replace(SELECTORS, ""));
  if (NOT_ASCII.test(folded)) folded = fold(folded.normalize("NFKC"));
  for (const [written] of folded.matchAll(WRITTEN)) {
    if (!NOT_ASCII.test(written)) yield [written];
    else for (const [word] of written.matchAll(OF_ONE_SCRIPT)) yield* keysOf(word);
  }
}

function* keysOf(word) {
  if (!STARTS_IN_SCRIPT.test(word)) return yield [...new Set([word, translate(word, SPELLED)].map(bare))];
  const signs = [...word];
  for (let at = 0; at < (signs.length - 1 || 1); at++) yield [signs.slice(at, at + 2).join("")];
}

/** All keys of a text; none if it has neither a letter nor a digit. @param {string} text */
export const allKeys = (text) => new Set([...wordKeys(text)].flat());

/**
 * The share of a query's words that each passage has, as `shared_words` of xsent/search/store.py has it: rare words
 * count more, squared. Words that no passage has do not count, but if there are any the share is of as much as they
 * weigh, at most of one rare word.
 * @param {{keys: string[], rarity: number}[]} words of the query @param {{keys: Set<string>}[]} passages
 */
export function sharesOf(words, passages) {
  const shares = new Float64Array(passages.length);
  if (words.length > MOST_WORDS) return shares;
  const weight = (count) => Math.log1p((passages.length - count + 0.5) / (count + 0.5)); // inverse document frequency
  let whole = 0;
  let missing = 0; // weight of words that no passage has
  for (const { keys, rarity } of words) {
    const having = [...passages.keys()].filter((i) => keys.some((key) => passages[i].keys.has(key)));
    const own = (rarity * weight(having.length)) ** 2;
    for (const i of having) shares[i] += own;
    if (having.length) whole += own;
    else missing += own;
  }
  whole = Math.max(whole, Math.min(missing, weight(1) ** 2));
  return shares.map((share) => share / (whole || 1));
}

/** Without case, as Python's `casefold`: "ẞ" is "ss", and "ς" is "σ". */
const fold = (text) => text.toLowerCase().toUpperCase().toLowerCase().replaceAll("ς", "σ");

const translate = (word, table) => word.replace(/[^\0-\x7f]/g, (letter) => table[letter] ?? letter);

/** A word without accents. */
const bare = (word) => translate(word, LETTERS).normalize("NFD").replace(ACCENTS, "").normalize("NFC");
