// What the installed npm package makes of texts: node npm_client.mjs < asked.json, beside its node_modules
import { readFileSync } from "node:fs";
import { Encoder, SearchIndex, cosine } from "xsent";

const { texts, queries, bundle } = JSON.parse(readFileSync(0, "utf8"));
const encoder = await Encoder.open();
const vectors = await encoder.encode(texts);
const windows = (await encoder.read(texts.at(-1))).windows;
const index = new SearchIndex(encoder);
await index.add(texts);
const hits = await Promise.all(queries.map((query) => index.search(query, { limit: 5 })));
const golden = await (await Encoder.open(bundle)).checkGolden();
await Promise.all([index.add(texts.slice(0, 2)), index.add(texts.slice(2, 4))]);
const rows = (await index.search(texts[0], { limit: 1000 })).map(({ row }) => row);
const refused = await Encoder.open("none").catch(({ message }) => message);
const same = cosine(vectors[0], await encoder.encode(texts[0]));
console.log(JSON.stringify({ vectors: vectors.map((vector) => [...vector]), windows, hits, golden, rows, refused, same }));
