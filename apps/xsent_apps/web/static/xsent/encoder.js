// Texts to vectors, as in xsent/encoder.py: one at a time through the graph, long ones in windows.

import { folderUrl, readFile, unpack } from "./files.js";
import { KnownWords } from "./known_words.js";
import { unit } from "./search.js";
import { Tokenizer } from "./tokenizer.js";
import * as ort from "./vendor/onnxruntime.js";

const DATA = ["embeddings.bin", "weights.bin"]; // the graph's weights
const FORMATS = [2, 3, 4];
const WINDOW = 128; // most tokens per window of a text that is too long to read at once

export class Encoder {
  /** Opens a bundle, by default the one in this package. @param {string | URL} folder a path in Node, or an address */
  static open(folder = new URL("model/", import.meta.url)) {
    const url = folderUrl(folder);
    const wasm = readFile(new URL("vendor/onnxruntime.wasm.gz", import.meta.url)).then(unpack);
    return Encoder.of((name) => readFile(new URL(name, url)), wasm);
  }

  /**
   * @param {(name: string) => Promise<Uint8Array>} read a file of the bundle
   * @param {Promise<Uint8Array>} wasm ONNX Runtime
   */
  static async of(read, wasm) {
    const manifest = JSON.parse(new TextDecoder().decode(await read("xsent.json")));
    if (!FORMATS.includes(manifest.format_version)) {
      const reads = FORMATS.join(", ");
      throw new Error(`The model has format ${manifest.format_version}, expected ${reads}; export it again.`);
    }
    const checked = async (name) => check(name, await read(name), manifest.files[name]);
    const names = ["sentencepiece.model", "model.onnx", ...DATA];
    const [pieces, graph, ...data] = await Promise.all(names.map(checked));
    const encoder = new Encoder();
    encoder.manifest = manifest;
    encoder.tokenizer = new Tokenizer(pieces);
    const files = Object.fromEntries(DATA.map((name, i) => [name, data[i]]));
    encoder.words = new KnownWords(manifest.network.tensors, files, encoder.tokenizer);
    ort.env.wasm.numThreads = 1; // more need certain headers from the host, and gain little for one sentence
    ort.env.wasm.wasmBinary = await wasm;
    encoder.session = await ort.InferenceSession.create(graph, {
      executionProviders: ["wasm"],
      externalData: DATA.map((path, i) => ({ path, data: data[i] })),
    });
    return encoder;
  }

  /** A vector of length 1 for each text, zero for an empty one. @param {string | string[]} texts */
  async encode(texts) {
    if (typeof texts === "string") return (await this.read(texts)).vector;
    const vectors = [];
    for (const text of texts) vectors.push((await this.read(text)).vector);
    return vectors;
  }

  /** The vector of a text, the number of windows that it took, and whether its characters are unknown. */
  async read(text) {
    const ids = this.tokenizer.encode(text);
    const { dim, max_length: longest } = this.manifest;
    const total = new Float64Array(dim);
    const windows = ids.length > longest ? Math.ceil(ids.length / Math.min(longest, WINDOW)) : Math.min(ids.length, 1);
    for (let start = 0, left = windows; left > 0; left--) {
      const window = ids.slice(start, start + Math.ceil((ids.length - start) / left));
      start += window.length;
      const vector = await this.#embed(window);
      for (let i = 0; i < dim; i++) total[i] += window.length * vector[i];
    }
    return { vector: unit(total), windows, unknown: this.tokenizer.mostlyUnknown(ids) };
  }

  /** The same for a query, with its words. */
  async readQuery(text) {
    return { ...(await this.read(text)), words: this.tokenizer.wordsOf(text) };
  }

  async #embed(ids) {
    const input_ids = new ort.Tensor("int64", BigInt64Array.from(ids, BigInt), [1, ids.length]);
    const { sentence_embedding } = await this.session.run({ input_ids });
    return sentence_embedding.data;
  }

  /** Encodes the golden sentences of the model; returns the largest difference for each. */
  async checkGolden() {
    const { sentences, vectors } = this.manifest.golden;
    const differences = [];
    for (const [row, sentence] of sentences.entries()) {
      const vector = await this.encode(sentence);
      differences.push(Math.max(...vector.map((value, i) => Math.abs(value - vectors[row][i]))));
    }
    return differences;
  }
}

async function check(name, bytes, expected) {
  const digest = globalThis.crypto?.subtle && (await crypto.subtle.digest("SHA-256", bytes)); // missing over plain HTTP
  const hex = digest && Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (bytes.length !== expected.bytes || (hex && hex !== expected.sha256)) {
    throw new Error(`${name} is damaged (${bytes.length} bytes, expected ${expected.bytes}); fetch it again.`);
  }
  return bytes;
}
