// What the page makes of notes in Markdown: node page_markdown.mjs FOLDER < notes.json
import { readFileSync } from "node:fs";

const [folder] = process.argv.slice(2);
const { toPassages } = await import(`${folder}/texts.js`);
const { sentencesOf } = await import(`${folder}/passages.js`);

const { notes, text } = JSON.parse(readFileSync(0, "utf8"));
const passages = notes.map((note) => toPassages({ name: "a.md", text: note, isFile: true }).passages);
console.log(JSON.stringify({ passages, sentences: [...sentencesOf(text)].map((one) => one.text.trim()) }));
