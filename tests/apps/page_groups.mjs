// What the page's map makes of texts: node page_groups.mjs FOLDER sentencepiece.model function_words.json < texts.json
import { readFileSync } from "node:fs";

const [folder, model, words] = process.argv.slice(2);
const { groupsOf, namesOf, withoutBackground } = await import(`${folder}/groups.js`);
const { Languages } = await import(`${folder}/languages.js`);
const { cosinesOf } = await import(`${folder}/layout.js`);
const { Tokenizer } = await import(`${folder}/xsent/tokenizer.js`);

const { texts, vectors } = JSON.parse(readFileSync(0, "utf8"));
const languages = new Languages(JSON.parse(readFileSync(words, "utf8")));
const tokenizer = new Tokenizer(new Uint8Array(readFileSync(model)));
const rarities = new Map(texts.flatMap((text) => tokenizer.wordsOf(text)).map(({ keys, rarity }) => [keys[0], rarity]));
const of = texts.map((text) => (/[\p{L}\p{N}]/u.test(text) ? languages.of(text) : null));
const [rows, dim] = [Float32Array.from(vectors.flat()), vectors[0].length];
const rest = withoutBackground(rows, dim, cosinesOf(rows, dim), of);
const groups = groupsOf(cosinesOf(rest, dim), texts.length);
const names = namesOf(groups, texts, languages, rarities);
console.log(JSON.stringify({ languages: of, rest: [...rest], ...groups, names }));
