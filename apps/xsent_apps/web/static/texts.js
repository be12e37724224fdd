// Files and pasted text to passages, and passages to sentences.

import { allKeys } from "./words.js";

const LARGEST = 5_000_000; // bytes of a file
const SHORT = 12; // characters: such a sentence is read with the next
const BLOCKS = "p, div, li, h1, h2, h3, h4, h5, h6, br, tr, td, th, dt, dd, section, article, pre";
const LAYOUT = "table, h1, h2, h3, h4, h5, h6, pre, section, article"; // what stands in no cell of a table of facts
const LONGEST = 2000; // characters of a passage: a longer one would keep all others, and the reader, waiting

const sentences = new Intl.Segmenter("en", { granularity: "sentence" });

/** @typedef {{start: number, text: string}} Sentence its place in the passage */
/** @typedef {{text: string, keys: Set<string>, encoded?: import("./model.js").Encoded}} Passage */

/** The text of a file; an Error says in one line why there is none. @param {File} file */
export async function readFile(file) {
  if (/\.pdf$/i.test(file.name)) throw new Error(`${file.name} is a PDF, which this page does not read; xsent notes does.`);
  if (file.size > LARGEST) {
    const megabytes = (file.size / 1e6).toFixed(1);
    throw new Error(`${file.name} has ${megabytes} MB; at most ${LARGEST / 1e6} MB are read. Split it, or use xsent index.`);
  }
  const bytes = new Uint8Array(await file.arrayBuffer());
  const text = decode(bytes);
  if (text === undefined) throw new Error(`${file.name} is not text. Save it as plain text (UTF-8) and drop it again.`);
  if (/\.html?$/i.test(file.name)) return fromHtml(text);
  return /\.(md|markdown)$/i.test(file.name) ? fromMarkdown(text) : text;
}

/** UTF-8 or, with its mark, UTF-16; undefined for anything else. @param {Uint8Array} bytes */
function decode(bytes) {
  const mark = `${bytes[0]} ${bytes[1]}`;
  const encoding = { "255 254": "utf-16le", "254 255": "utf-16be" }[mark] ?? "utf-8";
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}

/** What a reader sees of a page, a block a line; nothing in it runs or is fetched. @param {string} html */
export function fromHtml(html) {
  const { body } = new DOMParser().parseFromString(html, "text/html");
  for (const unseen of body.querySelectorAll("script, style, noscript, template, nav, svg")) unseen.remove();
  for (const text of textNodes(body)) text.data = text.data.replace(/\s+/g, " ");
  for (const end of body.querySelectorAll(BLOCKS)) {
    end.before("\n");
    end.after("\n");
  }
  for (const table of body.querySelectorAll("table")) if (!table.querySelector(LAYOUT)) joinCells(table);
  for (const description of body.querySelectorAll("dt + dd")) joinToTerm(description, description.previousElementSibling);
  return body.textContent;
}

function textNodes(root) {
  const found = [];
  const walker = root.ownerDocument.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) found.push(walker.currentNode);
  return found;
}

/** Makes each row of a table one text; a row of names only names the columns. */
function joinCells(table) {
  let names = [];
  for (const row of [...table.rows]) {
    const cells = Array.from(row.cells, (cell) => cell.textContent.replace(/\s+/g, " ").trim());
    if (row.querySelector("td")) row.textContent = namedCells(cells, names);
    else {
      names = cells;
      row.remove();
    }
  }
}

/** Makes a term of a list and its description one text. */
function joinToTerm(description, term) {
  const end = /[?!.:：？。]\s*$/.test(term.textContent) ? " " : ": ";
  description.prepend(term.textContent.trim() + end);
  term.remove();
}

/** The cells of a row, apart, each with the name of its column. @param {string[]} cells @param {string[]} names */
const namedCells = (cells, names) =>
  cells
    .map((cell, i) => (cell && names[i] ? `${names[i]}: ${cell}` : cell))
    .filter(Boolean)
    .join(" · ");

/** Without the marks of headings, lists, tables, quotes, emphasis and links; items and rows stand alone. @param {string} text */
export function fromMarkdown(text) {
  return withoutTables(text.replace(/\r\n?/g, "\n").replace(/^(```|~~~).*$/gm, ""))
    .replace(/^\s*(#{1,6}|[-*+]|\d+[.)])\s+/gm, "\n\n")
    .replace(/^\s*>\s+/gm, "")
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/(\*\*|__|`)/g, "");
}

function withoutTables(text) {
  const lines = text.split("\n");
  const isUnderNames = (line) => /^\s*\|[\s|:-]*$/.test(line ?? "");
  let names = [];
  const read = lines.map((line, i) => {
    if (!/^\s*\|.*\|\s*$/.test(line)) {
      names = [];
      return line;
    }
    const cells = line.trim().slice(1, -1).split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
    if (isUnderNames(line)) return "";
    if (!isUnderNames(lines[i + 1])) return `\n${namedCells(cells, names)}\n`;
    names = cells;
    return "";
  });
  return read.join("\n");
}

/** A passage a line, or several of a long one; lines that were only wrapped are put together again. @param {string} text @returns {Passage[]} */
export function toPassages(text) {
  const blocks = text.replace(/\r\n?/g, "\n").split(/\n\s*\n/);
  const lines = blocks.flatMap((block) => {
    const own = block.split("\n").map((line) => line.trim());
    return (isWrapped(own) ? [own.join(" ")] : own).flatMap(inParts);
  });
  return lines.map((line) => ({ text: line, keys: allKeys(line) })).filter(({ keys }) => keys.size);
}

/** Whether lines look like one text broken at a margin: each is as long as it could be, and most end in mid-sentence. */
function isWrapped(lines) {
  const margin = Math.max(...lines.map((line) => line.length));
  const broken = lines.slice(0, -1);
  const full = broken.filter((line, i) => line.length + 1 + lines[i + 1].search(/\s|$/) > margin);
  const open = broken.filter((line) => !/[.!?:;。！？…]["'”’»)]?$/.test(line));
  return margin >= 50 && margin <= 120 && full.length > 0.8 * broken.length && open.length > broken.length / 2;
}

/** @param {string} line @returns {string[]} */
function inParts(line) {
  const parts = [];
  let start = 0;
  while (line.length - start > LONGEST) {
    const end = start + endOfPart(line.slice(start, start + LONGEST));
    parts.push(line.slice(start, end).trim());
    start = end;
  }
  return [...parts, line.slice(start).trim()];
}

/** Where a part ends best: before its last sentence, which goes on, else at white space, else anywhere between characters. */
function endOfPart(beginning) {
  const sentence = [...sentences.segment(beginning)].at(-1).index;
  const space = beginning.search(/\s\S*$/);
  const between = /[\uD800-\uDBFF]$/.test(beginning) ? LONGEST - 1 : LONGEST;
  return [sentence, space].find((end) => end > LONGEST / 2) ?? between;
}

/** @param {string} passage @returns {Sentence[]} */
export function toSentences(passage) {
  const found = [];
  let start = 0;
  for (const { index, segment } of sentences.segment(passage)) {
    const end = index + segment.length;
    if (passage.slice(start, end).trim().length < SHORT && end < passage.length) continue;
    const text = passage.slice(start, end);
    found.push({ start: end - text.trimStart().length, text: text.trim() });
    start = end;
  }
  return found;
}
