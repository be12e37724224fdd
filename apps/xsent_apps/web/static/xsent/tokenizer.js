// Text to piece ids, like SentencePiece: normalise by the model's own rules, then cut into the likeliest sequence of
// pieces (Kudo 2018, unigram language model). Reads sentencepiece.model, a protobuf. Also computes how rare words are, as
// in xsent/tokenizer.py.

import { removeFormat, wordKeys } from "./words.js";

const TYPE = { unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 };
const SPACE = "▁";
const UNKNOWN_PENALTY = 10; // as in SentencePiece: an unknown character costs this much more than the rarest piece

const ACCENTED = /^(?=.*[ß-\u024f])[a-zß-\u024f]+$/;
const [FREQUENT, RARE] = [-8, -12]; // log-probabilities of words found nearly everywhere, and of rare words

export class Tokenizer {
  #accents; // built at first use

  /** @param {Uint8Array} file sentencepiece.model */
  constructor(file) {
    const { pieces, trainer, normalizer } = readModel(file);
    refuseOthers(trainer, normalizer, pieces);
    this.vocabularySize = pieces.length;
    this.normalizer = new Normalizer(normalizer);
    this.byteFallback = trainer.byteFallback;
    this.unknown = pieces.findIndex((piece) => piece.type === TYPE.unknown);
    this.bytes = new Int32Array(256).fill(this.unknown);
    this.known = new Map(); // piece -> id
    this.pieces = pieces.map(({ text }) => text);
    this.scores = Float32Array.from(pieces, (piece) => piece.score);
    this.longest = 1; // piece, in characters
    // Weight of each piece in `mostlyUnknown`, in thirds: above 0 for unknown characters, below 0 for known pieces.
    this.strangeness = new Int8Array(pieces.length).fill(-3);
    let lowest = Infinity;
    pieces.forEach(({ text, score, type }, id) => {
      if (type === TYPE.byte) {
        this.bytes[parseInt(text.slice(3, 5), 16)] = id;
        this.strangeness[id] = 1; // a character has two to four bytes
      } else if (type === undefined || type === 1) {
        this.known.set(text, id);
        this.longest = Math.max(this.longest, [...text].length);
        lowest = Math.min(lowest, score);
      }
    });
    this.strangeness[this.unknown] = 3;
    if (this.known.has(SPACE)) this.strangeness[this.known.get(SPACE)] = 0;
    this.unknownScore = Math.fround(lowest - UNKNOWN_PENALTY);
  }

  /** Piece ids of a text, without begin or end marks. @param {string} text @returns {number[]} */
  encode(text) {
    const characters = [...this.normalizer.normalize(removeFormat(text))];
    const ids = [];
    for (const [id, surface] of this.#best(characters)) {
      if (id !== this.unknown) ids.push(id);
      else if (this.byteFallback) for (const byte of new TextEncoder().encode(surface)) ids.push(this.bytes[byte]);
      else if (ids.at(-1) !== this.unknown) ids.push(id); // neighbouring unknown pieces are merged
    }
    return ids;
  }

  /** Whether the pieces contain more unknown characters than known pieces. @param {number[]} ids */
  mostlyUnknown(ids) {
    return ids.reduce((sum, id) => sum + this.strangeness[id], 0) > 0;
  }

  /** The words of a query, except words that are everywhere, with their keys and their rarity from 0 to 1. @param {string} text */
  wordsOf(text) {
    const words = Array.from(wordKeys(text), (keys) => ({ keys, rarity: this.#rarity(keys) })).filter(({ rarity }) => rarity > 0);
    return [...new Map(words.map((word) => [word.keys[0], word])).values()];
  }

  #rarity(keys) {
    if (keys.some((key) => /\p{Nd}/u.test(key))) return 1;
    const scores = keys.flatMap((key) => [this.#score(key), this.#accented().get(key) ?? -Infinity]);
    return rarity(Math.max(...scores));
  }

  /** The rarity of a piece; 0 for one without letters and digits, and for one byte of a character. @param {number} id */
  pieceRarity(id) {
    return /[\p{L}\p{N}]/u.test(this.pieces[id]) ? rarity(this.scores[id]) : 0;
  }

  /** Log-probability of a word that is one piece. */
  #score(word) {
    return this.scores[this.known.get(SPACE + word)] ?? -Infinity;
  }

  /** Log-probabilities of words with accents by their spelling without; of several words the likeliest. */
  #accented() {
    if (this.#accents) return this.#accents;
    this.#accents = new Map();
    for (const [piece, id] of this.known) {
      const word = piece.slice(1);
      if (piece[0] !== SPACE || !ACCENTED.test(word)) continue;
      for (const key of wordKeys(word).next().value ?? []) {
        this.#accents.set(key, Math.max(this.#accents.get(key) ?? -Infinity, this.scores[id]));
      }
    }
    return this.#accents;
  }

  /** Viterbi in single precision, so that ties are broken as in C++: [id, surface] of the best pieces. */
  #best(characters) {
    const n = characters.length;
    const score = new Float32Array(n + 1).fill(-Infinity); // of the best path to each position
    const start = new Int32Array(n + 1); // start of its last piece
    const last = new Int32Array(n + 1); // id of its last piece
    score[0] = 0;
    const offer = (from, to, id, own) => {
      const sum = Math.fround(score[from] + own);
      if (sum > score[to]) [score[to], start[to], last[to]] = [sum, from, id];
    };
    for (let from = 0; from < n; from++) {
      let piece = "";
      const end = Math.min(n, from + this.longest);
      for (let to = from + 1; to <= end; to++) {
        piece += characters[to - 1];
        const id = this.known.get(piece);
        if (id !== undefined) offer(from, to, id, this.scores[id]);
        else if (to === from + 1) offer(from, to, this.unknown, this.unknownScore);
      }
    }
    const best = [];
    for (let to = n; to > 0; to = start[to]) best.push([last[to], characters.slice(start[to], to).join("")]);
    return best.reverse();
  }
}

/** The rarity of a word or piece by its log-probability. */
const rarity = (probability) => Math.min(Math.max((FREQUENT - probability) / (FREQUENT - RARE), 0), 1);

/** Replaces the longest match in a table, and normalises spaces. */
class Normalizer {
  constructor({ charsmap, addDummyPrefix, removeExtraWhitespaces, escapeWhitespaces }) {
    Object.assign(this, { addDummyPrefix, removeExtraWhitespaces });
    this.space = new TextEncoder().encode(escapeWhitespaces ? SPACE : " ");
    const size = charsmap.length ? new DataView(charsmap.buffer, charsmap.byteOffset).getUint32(0, true) : 0;
    // Copied, because its offset in the file may not be a multiple of four. A double-array trie (Aoe 1989; darts-clone).
    this.trie = new Uint32Array(new Uint8Array(charsmap.subarray(4, 4 + size)).buffer);
    this.replacements = charsmap.subarray(4 + size); // each ends in a zero byte
  }

  normalize(text) {
    const input = new TextEncoder().encode(text);
    const out = input.length && this.addDummyPrefix ? [...this.space] : [];
    let previousIsSpace = this.removeExtraWhitespaces;
    for (let at = 0; at < input.length; ) {
      const [bytes, length] = this.#replace(input, at);
      at += length;
      let from = 0;
      while (previousIsSpace && bytes[from] === 32) from++;
      if (from === bytes.length) continue;
      for (const byte of bytes.subarray(from)) byte === 32 ? out.push(...this.space) : out.push(byte);
      previousIsSpace = this.removeExtraWhitespaces && bytes.at(-1) === 32;
    }
    const endsInSpace = () => this.space.every((byte, i) => out.at(i - this.space.length) === byte);
    while (this.removeExtraWhitespaces && out.length && endsInSpace()) out.length -= this.space.length;
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(out));
  }

  /** The replacement of the characters at a position, and their number of bytes. */
  #replace(input, at) {
    const { trie } = this;
    const offset = (unit) => (unit >>> 10) << ((unit & 0x200) >>> 6);
    let [value, length] = [-1, 0];
    let node = trie.length ? offset(trie[0]) : -1;
    for (let i = at; node >= 0 && i < input.length; i++) {
      node ^= input[i];
      const unit = trie[node];
      if (((unit & 0x800000ff) >>> 0) !== input[i]) break;
      node ^= offset(unit);
      if ((unit >>> 8) & 1) [value, length] = [trie[node] & 0x7fffffff, i + 1 - at];
    }
    if (value >= 0) return [this.replacements.subarray(value, this.replacements.indexOf(0, value)), length];
    const lead = input[at];
    const width = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    return [input.subarray(at, at + width), width];
  }
}

function refuseOthers(trainer, normalizer, pieces) {
  const kind = { 2: "BPE", 3: "word", 4: "character" }[trainer.modelType];
  const wrong =
    (kind && `is a ${kind} model`) ||
    (trainer.suffix && "marks spaces at the ends of words") ||
    (!pieces.some((piece) => piece.type === TYPE.unknown) && "has no piece for unknown characters") ||
    (pieces.some((piece) => piece.type === TYPE.userDefined) && "has user-defined pieces");
  if (wrong) throw new Error(`The tokenizer ${wrong}; expected a unigram model like those of xsent.`);
}

/** The fields of sentencepiece_model.proto that matter here, with their defaults. */
function readModel(file) {
  const pieces = [];
  const trainer = { modelType: 1, byteFallback: false, suffix: false };
  const normalizer = {
    charsmap: new Uint8Array(),
    addDummyPrefix: true,
    removeExtraWhitespaces: true,
    escapeWhitespaces: true,
  };
  for (const [field, value] of fields(file)) {
    if (field === 1) {
      const piece = Object.fromEntries(fields(value));
      const score = piece[2] ? new DataView(piece[2].buffer, piece[2].byteOffset).getFloat32(0, true) : 0;
      pieces.push({ text: new TextDecoder("utf-8", { ignoreBOM: true }).decode(piece[1]), score, type: piece[3] });
    } else if (field === 2) {
      const { 3: modelType = 1, 24: suffix = 0, 35: byteFallback = 0 } = Object.fromEntries(fields(value));
      Object.assign(trainer, { modelType, suffix: !!suffix, byteFallback: !!byteFallback });
    } else if (field === 3) {
      const { 2: charsmap = normalizer.charsmap, 3: prefix = 1, 4: extra = 1, 5: escape = 1 } = Object.fromEntries(
        fields(value),
      );
      Object.assign(normalizer, { charsmap, addDummyPrefix: !!prefix });
      Object.assign(normalizer, { removeExtraWhitespaces: !!extra, escapeWhitespaces: !!escape });
    }
  }
  return { pieces, trainer, normalizer };
}

/** [field, value] of a protobuf message: numbers, or bytes for longer values. */
function* fields(bytes) {
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      if (at >= bytes.length) throw new Error("The tokenizer's file ends too early; copy the whole bundle again.");
      const byte = bytes[at++];
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const key = varint();
    const wire = key & 7;
    if (wire === 0) yield [key >>> 3, varint()];
    else {
      const length = wire === 2 ? varint() : { 1: 8, 5: 4 }[wire];
      if (length === undefined || at + length > bytes.length) {
        throw new Error("This is not a SentencePiece model; copy the whole bundle again.");
      }
      yield [key >>> 3, bytes.subarray(at, (at += length))];
    }
  }
}
