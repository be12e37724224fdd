// What the page's tokenizer makes of texts: node page_tokenizer.mjs FOLDER sentencepiece.model < texts.json
import { existsSync, readFileSync } from "node:fs";
import { dirname } from "node:path";

const [folder, model] = process.argv.slice(2);
const { Tokenizer } = await import(`${folder}/tokenizer.js`);
const { KnownWords } = await import(`${folder}/known_words.js`);
const { hasWords, joinedKeys, sharesOf, wordKeys } = await import(`${folder}/words.js`);
try {
  const tokenizer = new Tokenizer(new Uint8Array(readFileSync(model)));
  const texts = JSON.parse(readFileSync(0, "utf8"));
  const ids = texts.map((text) => tokenizer.encode(text));
  const unknown = ids.map((pieces) => tokenizer.mostlyUnknown(pieces));
  const [keys, words] = [texts.map((text) => [...wordKeys(text)]), texts.map((text) => tokenizer.wordsOf(text))];
  const passages = texts.slice(0, 30).map((text) => ({ keys: joinedKeys(text) }));
  const shares = words.slice(0, 30).map((query) => [...sharesOf(query, passages)]);
  const worded = texts.map(hasWords);
  const bundle = dirname(model);
  let nearness = [];
  if (existsSync(`${bundle}/xsent.json`)) {
    const { tensors } = JSON.parse(readFileSync(`${bundle}/xsent.json`, "utf8")).network;
    const files = Object.fromEntries(["embeddings.bin", "weights.bin"].map((name) => [name, readFileSync(`${bundle}/${name}`)]));
    const known = new KnownWords(tensors, files, tokenizer);
    nearness = texts.slice(0, 30).map((query) => known.nearness(query, texts.slice(0, 30)));
  }
  console.log(JSON.stringify({ nearness, worded, ids, unknown, keys, words, shares }));
} catch (error) {
  console.log(JSON.stringify({ error: error.message }));
}
