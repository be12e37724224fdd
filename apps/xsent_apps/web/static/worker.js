// The thread that runs the model, so that typing never waits for it. One text at a time; urgent ones come first.

import { askToStay, fetchKept } from "./keep.js";
import { Encoder } from "./xsent/encoder.js";
import { unpack } from "./xsent/files.js";

const NEAR = 1e-3; // tolerance of each number of a golden vector
const RUNTIME = "xsent/vendor/onnxruntime.wasm.gz";

let encoder;
const urgent = [];
const patient = [];
const dropped = new Set();

async function open(list) {
  const wanted = Object.entries(list.files).filter(([path]) => path.startsWith("model/") || path === RUNTIME);
  const total = wanted.reduce((sum, [path, file]) => sum + (path.endsWith(".md") ? 0 : file.bytes), 0);
  let [done, fetched] = [0, 0];
  const read = (path) => {
    if (!list.files[path]) throw new Error(`${path} is missing from this site; write the site again with xsent web --out.`);
    return fetchKept(path, list.files[path].sha256, (bytes, isNew) => {
      done += bytes;
      if (isNew) fetched += bytes;
      postMessage({ kind: "progress", done, total });
    });
  };
  encoder = await Encoder.of((name) => read(`model/${name}`), read(RUNTIME).then(unpack));
  await encoder.encode("warm");
  const start = performance.now();
  const differences = await encoder.checkGolden();
  const milliseconds = (performance.now() - start) / (differences.length || 1);
  const { name, languages, fingerprint, dim, num_layers: layers, max_length: longest, licence } = encoder.manifest;
  const golden = {
    total: differences.length,
    near: differences.filter((difference) => difference <= NEAR).length,
    worst: Math.max(0, ...differences),
    allowed: Math.max(...Object.values(encoder.manifest.golden.tolerance)), // between different machines
  };
  askToStay();
  const about = { name, languages, fingerprint, dim, layers, longest, licence, bytes: done, fetched };
  postMessage({ kind: "ready", about: { ...about, golden, milliseconds } });
  work();
}

const otherMessages = new MessageChannel();

/** Lets pending messages be handled. */
const breathe = () =>
  new Promise((resolve) => {
    otherMessages.port1.onmessage = resolve;
    otherMessages.port2.postMessage(null);
  });

let working = false;

async function work() {
  if (working || !encoder) return;
  working = true;
  for (let job = urgent[0] ?? patient[0]; job; job = urgent[0] ?? patient[0]) {
    await advance(job);
    await breathe();
  }
  working = false;
}

/** Encodes the next text of a job. */
async function advance(job) {
  const queue = job.urgent ? urgent : patient;
  if (job.next >= job.texts.length || dropped.delete(job.id)) {
    queue.splice(queue.indexOf(job), 1);
    return;
  }
  const start = performance.now();
  try {
    const text = job.texts[job.next];
    const encoded = await (job.query ? encoder.readQuery(text) : encoder.read(text));
    const milliseconds = performance.now() - start;
    postMessage({ kind: "encoded", id: job.id, at: job.next, encoded, milliseconds }, [encoded.vector.buffer]);
  } catch (error) {
    postMessage({ kind: "failed", message: `A text could not be encoded: ${error.message}` });
  }
  job.next++;
}

onmessage = ({ data }) => {
  if (data.kind === "open") {
    open(data.list).catch((error) => postMessage({ kind: "failed", message: error.message ?? String(error) }));
  } else if (data.kind === "drop") {
    dropped.add(data.id);
  } else if (data.kind === "rarities") {
    const words = data.texts.flatMap((text) => encoder.tokenizer.wordsOf(text));
    postMessage({ kind: "answer", id: data.id, answer: new Map(words.map(({ keys, rarity }) => [keys[0], rarity])) });
  } else if (data.kind === "nearness") {
    postMessage({ kind: "answer", id: data.id, answer: encoder.words.nearness(data.query, data.texts) });
  } else {
    (data.urgent ? urgent : patient).push({ ...data, next: 0 });
    work();
  }
};
