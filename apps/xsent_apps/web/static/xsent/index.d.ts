/** A sentence encoder: a bundle's tokenizer and its graph in ONNX Runtime Web, on the CPU. */
export class Encoder {
  private constructor();

  /**
   * Opens a bundle and compares its files with their digests.
   * @param folder a path in Node, an address in a browser; by default the model in this package
   */
  static open(folder?: string | URL): Promise<Encoder>;

  /** Opens a bundle from functions of your own, for example from a cache. */
  static of(read: (name: string) => Promise<Uint8Array>, wasm: Uint8Array | Promise<Uint8Array>): Promise<Encoder>;

  /** What `xsent.json` of the bundle says. */
  readonly manifest: Manifest;

  /** A vector of length 1; zero for an empty text. A long text is encoded in windows. */
  encode(text: string): Promise<Float32Array>;
  encode(texts: readonly string[]): Promise<Float32Array[]>;

  /** A vector, and what the encoder noticed about its text. */
  read(text: string): Promise<Encoded>;

  /** Encodes the golden sentences of the bundle: the largest difference of a number, for each sentence. */
  checkGolden(): Promise<number[]>;
}

export interface Encoded {
  vector: Float32Array;
  /** How many windows the text took; 0 for an empty one. */
  windows: number;
  /** Whether the model knows hardly any of its characters. */
  unknown: boolean;
}

/** A few fields of `xsent.json`. */
export interface Manifest {
  name: string;
  fingerprint: string;
  languages: string[];
  licence: string;
  dim: number;
  num_layers: number;
  max_length: number;
  golden: { sentences: string[]; vectors: number[][]; tolerance: Record<string, number> };
}

/** Texts in memory, found by meaning and by words, with the scores of `xsent search`. */
export class SearchIndex {
  constructor(encoder: Encoder);

  /** Encodes texts and adds them. */
  add(texts: Iterable<string>): Promise<void>;

  /** The nearest texts, best first; 10 unless `limit` says otherwise. */
  search(query: string, options?: { limit?: number }): Promise<Hit[]>;
}

export interface Hit {
  text: string;
  /** The place of the text among those that were added, from 0. */
  row: number;
  /** The cosine, plus up to 0.5 for words of the query in the text, and up to 0.25 for words near to them. */
  score: number;
  /** Whether hardly any unrelated text has such a score. */
  close: boolean;
}

/** The cosine of two vectors of length 1. */
export function cosine(a: Float32Array, b: Float32Array): number;
