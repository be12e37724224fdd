// The language of a text, from its script and its function words, as in xsent/languages.py.

import { fold, withoutAccents } from "./xsent/words.js";

const LOOKED_AT = 1000; // characters; more do not help
// Skips the letters of DE89, 14h05 and °C, and single consonants ("T-shirt") unless an apostrophe follows ("l'eau").
const WORD = /[a-z]*[0-9°][a-z0-9°]*|[b-df-hj-np-tv-xz](?![\p{L}\p{N}'’])|(\p{L}+)/gu;
const SCRIPTS = [
  ["ja", /[\u3041-\u30ff]/g],
  ["zh", /[\u3400-\u4dbf\u4e00-\u9fff]/g],
  ["ru", /[\u0400-\u04ff]/g],
  ["ar", /[\u0600-\u06ff]/g],
  ["ko", /[\uac00-\ud7af]/g],
];
const SHARE = 4; // a script decides the language if more than one letter in four is in it

export class Languages {
  #of; // the languages that have a function word, by the word with and without its accents

  /** @param {Record<string, string>} words of each language, separated by spaces: function_words.json */
  constructor(words) {
    const listed = Object.entries(words).flatMap(([one, text]) => text.split(" ").map((word) => [one, word]));
    const spelled = byWord(listed);
    this.#of = new Map([...byWord(listed.map(([one, word]) => [one, withoutAccents(word)])), ...spelled]);
  }

  /** The code of a text's language, empty if unknown. @param {string} text */
  of(text) {
    const words = [...fold(text.slice(0, LOOKED_AT)).matchAll(WORD)].flatMap(([, word]) => word ?? []);
    const letters = words.join("");
    const script = SCRIPTS.find(([, signs]) => SHARE * (letters.match(signs)?.length ?? 0) > letters.length);
    if (script) return script[0];
    const shares = new Map();
    for (const word of words) {
      const known = this.#of.get(word) ?? new Set();
      for (const one of known) shares.set(one, (shares.get(one) ?? 0) + 1 / known.size);
    }
    const most = Math.max(0, ...shares.values());
    const likeliest = [...shares.keys()].filter((one) => shares.get(one) === most);
    return likeliest.length === 1 ? likeliest[0] : "";
  }

  /** Whether a word is a function word of any of the languages. @param {string} word */
  have(word) {
    return this.#of.has(fold(word));
  }
}

function byWord(listed) {
  const found = new Map();
  for (const [language, word] of listed) found.set(word, (found.get(word) ?? new Set()).add(language));
  return found;
}
