// Reads a folder of `xsent-export --format web` as people do: transformers.js for the tokenizer and the model, and
// onnxruntime-web as in a browser.
//
//     node web_client.mjs NODE_MODULES FOLDER BACKEND < texts.json > answer.json
//
// BACKEND: "transformers" (transformers.js whole, onnxruntime for Node) or "wasm" (its tokenizer, onnxruntime-web).
// Answer: {ids: [[...], ...], vectors: [[...], ...]}, the vectors as the model gives them, from one padded batch.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, folder, backend] = process.argv.slice(2);
const require = createRequire(join(modules, "client.js"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);

const { AutoModel, AutoTokenizer, env } = await load("@huggingface/transformers");
env.allowRemoteModels = false;
env.localModelPath = dirname(folder);

const texts = JSON.parse(readFileSync(0, "utf8"));
const tokenizer = await AutoTokenizer.from_pretrained(folder);
const inputs = tokenizer(texts, { padding: true, truncation: true });
const run = { transformers: runTransformers, wasm: runWasm }[backend];
const { data, dims } = await run();
const vectors = texts.map((_, i) => Array.from(data.slice(i * dims[1], (i + 1) * dims[1])));
process.stdout.write(JSON.stringify({ ids: texts.map((text) => tokenizer.encode(text)), vectors }));

async function runTransformers() {
  const model = await AutoModel.from_pretrained(folder);
  return (await model(inputs)).sentence_embedding;
}

async function runWasm() {
  const ort = await load("onnxruntime-web");
  ort.env.wasm.numThreads = 1;
  const session = await ort.InferenceSession.create(readFileSync(join(folder, "onnx", "model.onnx")));
  const names = ["input_ids", "attention_mask"];
  const tensor = ({ data, dims }) => new ort.Tensor("int64", data, dims);
  const feeds = Object.fromEntries(names.map((name) => [name, tensor(inputs[name])]));
  return (await session.run(feeds)).sentence_embedding;
}
