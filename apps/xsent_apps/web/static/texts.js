// Files and pasted text to passages, and passages to sentences.

import { readMarkdown } from "./markdown.js";
import { fromMarkdown, inParts, rejoined, sentencesOf } from "./passages.js";
import { parseTable, textColumn } from "./table.js";

const LARGEST = 5_000_000; // most bytes of a file
const SHORT = 12; // characters; a sentence this short is joined with the next
const BLOCKS = "p, div, li, h1, h2, h3, h4, h5, h6, br, tr, td, th, dt, dd, section, article, pre";
const LAYOUT = "table, h1, h2, h3, h4, h5, h6, pre, section, article"; // elements that only tables for layout contain
const UNSEEN = "script, style, noscript, template, svg, nav, footer, button, select, textarea, [hidden], [role=navigation], rp, rt, rtc";

/** @typedef {{name: string, text: string, isFile?: boolean, column?: number, id?: number}} Source columns for a table */
/** @typedef {{start: number, text: string}} Sentence start is its position in the passage */
/** @typedef {{text: string, context: string, id: string}} Passage context is its topic */

/** The content of a file; throws a one-line Error if it cannot be read. @param {File} file @returns {Promise<Source>} */
export async function readFile(file) {
  if (/\.pdf$/i.test(file.name)) throw new Error(`${file.name} is a PDF, which this page cannot read; use xsent notes.`);
  if (file.size > LARGEST) {
    const megabytes = (file.size / 1e6).toFixed(1);
    throw new Error(`${file.name} has ${megabytes} MB; the limit is ${LARGEST / 1e6} MB. Split it, or use xsent index.`);
  }
  const text = decode(new Uint8Array(await file.arrayBuffer()));
  if (text === undefined) throw new Error(`${file.name} is not text in UTF-8. Save it as plain text or CSV in UTF-8.`);
  return { name: file.name, text, isFile: true };
}

/**
 * The passages of a source. In a table, each row is a passage; also returns the columns and the two that were used.
 * @param {Source} source @returns {{passages: Passage[], columns?: string[], column?: number, id?: number}}
 */
export function toPassages({ name, text, isFile, column, id }) {
  const stem = isFile ? name.replace(/\.[^.]*$/, "") : "";
  if (isFile && /\.(csv|tsv|jsonl|ndjson)$/i.test(name)) {
    const { columns, rows } = parseTable(text, name);
    column ??= textColumn(rows);
    id ??= columns.findIndex((one) => /^id$/i.test(one));
    const passages = rows.flatMap((row) =>
      inParts(row[column].trim()).map((part) => ({ text: part, context: "", id: row[id] ?? "" })),
    );
    return { passages, columns, column, id };
  }
  const lines = text.replace(/\r\n?/g, "\n");
  if (isFile && /\.(md|markdown|html?)$/i.test(name)) {
    const { text: content, names } = /html?$/i.test(name) ? fromHtml(lines) : readMarkdown(lines);
    const found = fromMarkdown(content, [stem, ...names]);
    return { passages: found.map((one) => ({ text: plain(one.text), context: plain(one.context), id: "" })) };
  }
  return { passages: toLines(lines).map((line) => ({ text: line, context: stem, id: "" })) };
}

/** UTF-8 or, with a byte-order mark, UTF-16; undefined for anything else. @param {Uint8Array} bytes */
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

/** The visible text of a page as Markdown; nothing in it runs or is fetched. @param {string} html */
function fromHtml(html) {
  const { body, title } = new DOMParser().parseFromString(html, "text/html");
  for (const unseen of body.querySelectorAll(UNSEEN)) unseen.remove();
  for (const text of textNodes(body)) text.data = rejoined(text.data).replace(/\s+/g, " ");
  for (const end of body.querySelectorAll(BLOCKS)) {
    end.before("\n\n");
    end.after("\n\n");
  }
  for (const heading of body.querySelectorAll("h1, h2, h3, h4, h5, h6")) heading.prepend(`${"#".repeat(heading.localName[1])} `);
  for (const item of body.querySelectorAll("li, dt")) item.prepend("- ");
  for (const table of body.querySelectorAll("table")) if (!table.querySelector(LAYOUT)) toMarkdown(table);
  for (const description of body.querySelectorAll("dt + dd")) joinToTerm(description, description.previousElementSibling);
  return { text: body.textContent.replace(/^ +/gm, ""), names: [title] };
}

function textNodes(root) {
  const found = [];
  const walker = root.ownerDocument.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) found.push(walker.currentNode);
  return found;
}

/** Turns each row of a table into one line, with a rule below a header row. */
function toMarkdown(table) {
  const rows = Array.from(table.rows, (row) => {
    const cells = Array.from(row.cells, ({ textContent }) => textContent.replace(/\s+/g, " ").trim().replaceAll("|", "\\|"));
    return `| ${cells.join(" | ")} |\n${row.querySelector("td") ? "" : "|---|\n"}`;
  });
  table.textContent = `\n\n${rows.join("")}\n`;
}

/** Joins a term of a list and its description into one text. */
function joinToTerm(description, term) {
  const end = /[?!.:：？。]\s*$/.test(term.textContent) ? " " : ": ";
  description.prepend(term.textContent.trim() + end);
  term.remove();
}

/** A text without the marks of code; its content stays, such as `__init__`. @param {string} text */
const plain = (text) => text.replaceAll("`", "");

/** One passage per line, several for a long line; wrapped lines are rejoined. @param {string} text */
const toLines = (text) =>
  text.split(/\n\s*\n/).flatMap((block) => {
    const own = block.split("\n").map((line) => line.trim());
    return (isWrapped(own) ? [rejoined(own.join("\n")).replaceAll("\n", " ")] : own).flatMap(inParts).filter(Boolean);
  });

/** Whether lines look like one text broken at a margin: each is as long as it could be, and most end in mid-sentence. */
function isWrapped(lines) {
  const margin = lines.reduce((longest, line) => Math.max(longest, line.length), 0);
  const broken = lines.slice(0, -1);
  const full = broken.filter((line, i) => line.length + 1 + lines[i + 1].search(/\s|$/) > margin);
  const open = broken.filter((line) => !/[.!?:;。！？…]["'”’»)]?$/.test(line));
  return margin >= 50 && margin <= 120 && full.length > 0.8 * broken.length && open.length > broken.length / 2;
}

/** @param {string} passage @returns {Sentence[]} */
export function toSentences(passage) {
  const found = [];
  let start = 0;
  for (const { end } of sentencesOf(passage)) {
    if (passage.slice(start, end).trim().length < SHORT && end < passage.length) continue;
    const text = passage.slice(start, end);
    found.push({ start: end - text.trimStart().length, text: text.trim() });
    start = end;
  }
  return found;
}
