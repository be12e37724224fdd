// Tables of texts: reads CSV, TSV and JSON Lines, writes CSV.

import { save } from "./dom.js";

const DELIMITERS = [",", ";", "\t"];
const HEAD = 100; // rows used to detect the format of a table
const SEVERAL_WORDS = /\p{L}\S*\s+\S*\p{L}\S*\s+\S*\p{L}|[\u3041-\u9fff]{5}/u;

/** Names of the columns and fields of the rows; errors name the row. @param {string} text @param {string} name of the file */
export function parseTable(text, name) {
  if (/\.(jsonl|ndjson)$/i.test(name)) return parseJsonLines(text, name);
  const separator = /^"?sep=(.)"?\r?\n/i.exec(text); // the first line of a CSV for Excel
  if (separator) text = text.slice(separator[0].length);
  const widths = DELIMITERS.map((sign) => widthOf(text, sign));
  const likely = DELIMITERS[widths.indexOf(Math.max(...widths))];
  const delimiter = separator?.[1] ?? (/\.tsv$/i.test(name) ? "\t" : likely);
  const [columns, ...rows] = recordsOf(text, delimiter);
  const odd = rows.findIndex((row) => row.length !== columns?.length);
  if (odd >= 0) throw new Error(`${name}, row ${odd + 2}: ${rows[odd].length} fields, expected ${columns.length} as in row 1.`);
  return { columns: columns?.map((one) => one.trim()) ?? [], rows };
}

/** How well a delimiter fits: the number of columns it yields, and more if all rows have the same number. */
function widthOf(text, delimiter) {
  const widths = [];
  for (const { length } of recordsOf(text, delimiter)) if (widths.push(length) === HEAD) break;
  const [first = 0] = widths;
  return first > 1 && widths.every((width) => width === first) ? 1000 + first : first;
}

/** Rows of fields; quoted fields may contain line breaks, delimiters and doubled quotes. */
function* recordsOf(text, delimiter) {
  const sign = delimiter.replace(/[^\w\s]/, "\\$&");
  const field = new RegExp(`(?:"([^"]*(?:""[^"]*)*)"|([^${sign}\\r\\n]*))(${sign}|\\r\\n?|\\n|$)`, "gy");
  let row = [];
  for (const [, quoted, bare, end] of text.matchAll(field)) {
    row.push(quoted?.replaceAll('""', '"') ?? bare);
    if (end === delimiter) continue;
    if (row.length > 1 || row[0]) yield row; // otherwise an empty line
    row = [];
  }
}

function parseJsonLines(text, name) {
  const objects = text.split("\n").flatMap((line, i) => {
    try {
      return line.trim() ? [JSON.parse(line)] : [];
    } catch {
      throw new Error(`${name}, line ${i + 1} is not JSON; expected one object per line.`);
    }
  });
  const columns = [...new Set(objects.flatMap((one) => Object.keys(one ?? {})))];
  if (!columns.length) throw new Error(`${name} has no fields; expected one object per line.`);
  const field = (value) => (typeof value === "string" ? value : value == null ? "" : JSON.stringify(value));
  return { columns, rows: objects.map((one) => columns.map((column) => field(one?.[column]))) };
}

/** The first column in which most fields have several words, otherwise the one with the most characters. @param {string[][]} rows */
export function textColumn(rows) {
  const head = rows.slice(0, HEAD);
  const places = [...(rows[0] ?? [""]).keys()];
  const lengths = places.map((place) => head.reduce((sum, row) => sum + row[place].length, 0));
  const isText = (place) => head.filter((row) => SEVERAL_WORDS.test(row[place].slice(0, 500))).length > head.length / 2;
  return places.find(isText) ?? lengths.indexOf(Math.max(...lengths));
}

/** Downloads a CSV. @param {string} name @param {string[]} columns @param {unknown[][]} rows */
export function saveCsv(name, columns, rows) {
  // Keeps spreadsheets from reading a text as a formula.
  const safe = (value) => (typeof value === "string" && /^[=+\-@\t\r]/.test(value) && isNaN(value) ? `'${value}` : value);
  const field = (value) => (/[",;\s]/.test(value) ? `"${String(safe(value)).replaceAll('"', '""')}"` : safe(value));
  const lines = [columns, ...rows].map((row) => `${row.map(field).join(",")}\r\n`);
  save(name, new Blob(["\ufeff", ...lines], { type: "text/csv" })); // with the byte-order mark, Excel recognises UTF-8
}
