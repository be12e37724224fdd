// How near words are to each other, whatever their language, as in xsent/known_words.py.

import { unit } from "./search.js";

const MOST = 64; // pieces; a longer query is a text in itself, not a search for words
const UNRELATED = 0.3; // nearness of unrelated texts, before it is scaled
const READ = 20_000; // characters of a text

export class KnownWords {
  /**
   * @param {Record<string, {file: string, offset: number, dtype: string, shape: number[]}>} tensors of the manifest
   * @param {Record<string, Uint8Array>} files in which they are
   * @param {import("./tokenizer.js").Tokenizer} tokenizer
   */
  constructor(tensors, files, tokenizer) {
    const open = ({ file, offset, ...rest }) => ({ ...rest, view: new DataView(files[file].buffer, files[file].byteOffset + offset) });
    this.table = open(tensors.table);
    this.scales = tensors["table.scales"] && open(tensors["table.scales"]);
    this.tokenizer = tokenizer;
  }

  /** How near the words of each text are to those of the query: 0 for unrelated ones, 1 for the same. */
  nearness(query, texts) {
    const asked = [...new Set(this.tokenizer.encode(query))]
      .map((piece) => ({ piece, weight: this.tokenizer.pieceRarity(piece) }))
      .filter(({ weight }) => weight)
      .map(({ piece, weight }) => ({ weight, row: this.row(piece) }));
    const whole = asked.reduce((sum, { weight }) => sum + weight, 0);
    if (!whole || asked.length > MOST) return texts.map(() => 0);
    const cosines = new Map(); // piece of a text -> its cosines with the pieces of the query
    return texts.map((text) => {
      const best = new Float64Array(asked.length).fill(-1);
      const pieces = new Set(this.tokenizer.encode([...text].slice(0, READ).join("")));
      for (const piece of pieces) {
        if (!cosines.has(piece)) cosines.set(piece, this.#cosines(asked, piece));
        cosines.get(piece).forEach((cosine, i) => (best[i] = Math.max(best[i], cosine)));
      }
      const mean = pieces.size ? best.reduce((sum, cosine, i) => sum + asked[i].weight * cosine, 0) / whole : 0;
      return Math.min(Math.max((mean - UNRELATED) / (1 - UNRELATED), 0), 1);
    });
  }

  #cosines(asked, piece) {
    const row = this.row(piece);
    return asked.map((own) => own.row.reduce((sum, value, i) => sum + value * row[i], 0));
  }

  /** The row of a piece in the table, of length 1. */
  row(piece) {
    const { dtype, shape, view } = this.table;
    const width = shape[1];
    const start = piece * width;
    if (dtype === "int8") return unit(Float32Array.from({ length: width }, (_, i) => view.getInt8(start + i)));
    if (dtype === "float32") return unit(Float32Array.from({ length: width }, (_, i) => view.getFloat32(4 * (start + i), true)));
    const blocks = this.scales.shape[1]; // of numbers with the same scale; two numbers per byte, the low halves first
    return unit(
      Float32Array.from({ length: 2 * width }, (_, i) => {
        const byte = view.getUint8(start + (i % width));
        const scale = this.scales.view.getUint16(2 * (piece * blocks + Math.floor((i * blocks) / (2 * width))), true);
        return ((i < width ? byte & 15 : byte >> 4) - 8) * fromHalf(scale);
      }),
    );
  }
}

/** A positive float16 from its bits. */
const fromHalf = (bits) => (bits < 1024 ? bits * 2 ** -24 : (1024 + (bits & 1023)) * 2 ** ((bits >> 10) - 25));
