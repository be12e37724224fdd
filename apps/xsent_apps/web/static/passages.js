// Turns Markdown into passages with their headings, as in xsent_apps/notes/passages.py.

const PASSAGE_LENGTH = 500; // characters, or half as many in Japanese; a longer passage is cut between two sentences
const LONGEST = 2000; // most characters of a passage; a longer one would keep all others, and the reader, waiting
const JOINED_LENGTH = 200; // the same; short neighbours are joined up to this length
const LEAD_LENGTH = 200; // a longer paragraph that ends in a colon is more than a lead-in
const ABOVE = " › "; // between the parts of a context

const sentences = new Intl.Segmenter("en", { granularity: "sentence" });
// The segmenter knows no abbreviations: "3. Mai", "z. B." and "Dr. Weiß" are not two sentences.
const UNFINISHED =
  /(?:^|[\s(.])(?:\d{1,2}|\p{L}|[DFHMS]r|Mrs|Ms|Mme|Prof|St|Sra|Dra|Sig|Dott|[NBV]r|No|Nos|S|Abb|Bd|Fig|Kap|Tel|Str|bzw|ca|vgl|usw|etc|evtl|inkl|vs|approx|проф|ул|стр|им)\.\s*$/iu;
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6]/g; // characters of two columns
const CONTROL = /[\0-\x08\x0b-\x1f\x7f-\x9f]/g;
const HEADING = /^(#{1,6})\s+(.*)/;
const HEADING_END = /(^|\s)#+$/;
const UNDERLINE = /^(={3,}|-{3,})\s*$/; // below a heading
const RULE = /^\s*([-*_]\s*){3,}$/;
// In Japanese texts, if the next line is text and not another one, as in a list.
const JAPANESE_HEADING = /^\s*([■□◆◇●▼▽【])(?=.*[ぁ-ヿ一-鿿])[^。、：:…■□◆◇●▼▽━]{2,25}[：:]?\s*$/;
const ITEM = /^\s*([-*+•·▪‣◦☐☑☒]|\d{1,3}[.)])\s/;
const BOX = /^(\s*\S+)\s+(?:\[(?:[xX]|[^\p{L}\p{N}_[\]])\]|[☐☑☒])(?=\s|$)/u; // of a task, after the mark of its item
const FENCE = /^[\s>]*((?:[-*+]|\d{1,9}[.)])\s+)?(`{3,}(?=[^`]*$)|~{3,}(?!~))(.*)/;
const COMMAND = /^\s*`[^`]+`\s*$/; // the only line of its paragraph
const ROW = /^\s*\|.*\|\s*$/;
const UNDER_HEADER = /^[\s|:-]+$/;
const QUOTE = /^\s*(>\s?)+/;
const CUT = /([\p{L}\p{N}_]{1,40})([-\u2010\u00ad¬])\s*\n\s*([\p{L}\p{N}][\p{L}\p{N}_]{0,39})/gu;
const SOFT = /\u00ad(?![ \t]*\n[ \t]*[\p{L}\p{N}])/gu; // all but those that join the halves of a word
const AND = /^(und|oder|bzw|sowie|and|or|et|ou|y|o|e|u|и)$/i; // "Ein- und Ausgang" has no word to join
const LETTER = /[\p{L}\p{N}_]/u;

/** @typedef {{kind: string, level: number, lines: string[]}} Block lines that belong together; a heading has a level */

/**
 * @param {string} text @param {string[]} about names of the whole file, such as its title
 * @returns {{text: string, context: string}[]} the context is a passage's topic: names, headings and lead-in
 */
export function fromMarkdown(text, about = []) {
  const known = compoundsOf(text);
  const blocks = [...blocksOf(text.replace(SOFT, "").split("\n"))];
  for (const block of blocks) if (["text", "item"].includes(block.kind)) block.lines = rejoined(block.lines.join("\n"), known).split("\n");
  const onlyHeadings = blocks.every(({ kind }) => kind === "heading"); // the file has no other text
  const places = []; // runs of blocks with the same context
  let [headings, lead, section] = [[], "", 0];
  for (const [i, block] of blocks.entries()) {
    const follower = blocks[i + 1];
    if (block.kind === "heading" && !onlyHeadings) {
      headings = [...headings.filter(({ level }) => level < block.level), block];
      lead = "";
      section++;
    } else if (leads(block, follower)) lead = textOf(block).replace(ITEM, "");
    else {
      const context = contextOf(about, headings.map(textOf), lead);
      if (places.at(-1)?.context !== context || places.at(-1).section !== section) places.push({ context, section, blocks: [] });
      places.at(-1).blocks.push(block);
      if (block.kind === "text" || (follower && follower.kind !== block.kind)) lead = "";
    }
  }
  return places.flatMap(({ context, blocks }) =>
    [...joined(blocks)].flatMap((lines) => [...cut(lines)].map((passage) => ({ text: passage, context }))),
  );
}

/** The headings and the lead-in of a context, without the names of the file before them. @param {string} context */
export const headingsOf = (context) => context.split(ABOVE).slice(1).join(ABOVE);

const textOf = ({ lines }) => lines.map((line) => line.trim()).join(" ");

/** The context, without repetitions. */
function contextOf(about, headings, lead) {
  const known = new Set();
  const news = (names) =>
    names.filter((name) => name && !known.has(name.toLowerCase()) && known.add(name.toLowerCase())).join(", ");
  const parts = [about, ...headings.map((heading) => [heading]), [lead.replace(/[:： ]+$/, "")]];
  return parts.map(news).filter(Boolean).join(ABOVE);
}

/** Whether a block only announces the one that follows, as "You need:" does. */
function leads(block, follower) {
  const whole = textOf(block);
  if (whole.length > 2 * LEAD_LENGTH) return false;
  const text = whole.replace(/[*_ ]+$/, "");
  const announces = /[:：]$/.test(text) && text.length <= LEAD_LENGTH && ["text", "item"].includes(block.kind);
  return announces && follower && follower.kind !== "heading";
}

/** Columns that a text takes. @param {string} text */
const displayWidth = (text) => text.length + (text.match(WIDE)?.length ?? 0);

/** Joins the lines of short neighbours below the same heading; a command stays with its description. */
function* joined(blocks) {
  let [lines, kind, length] = [[], "", 0];
  for (const block of blocks) {
    const more = displayWidth(textOf(block)) + 1;
    const belongs = block.kind === "code" || (block.kind === "item" && /^\s/.test(block.lines[0]));
    const isFull = length + more > JOINED_LENGTH && !belongs;
    if (lines.length && (isFull || [kind, block.kind].includes("row"))) {
      yield lines;
      [lines, length] = [[], 0];
    }
    lines = lines.concat(block.lines);
    kind = block.kind;
    length += more;
  }
  yield lines;
}

/** Words with a hyphen within a line. @param {string} text */
const compoundsOf = (text) =>
  new Set(Array.from(text.toLowerCase().matchAll(/([\p{L}\p{N}_]+)-(?=([\p{L}\p{N}_]+))/gu), ([, one, other]) => `${one}-${other}`));

/** A text whose cut words are joined; words such as Anglo-Saxon keep their hyphen. @param {string} text */
export const rejoined = (text, known = new Set()) =>
  text.replace(CUT, (found, one, sign, other) => {
    if (AND.test(other)) return found;
    const isCut = /[\u00ad¬]/.test(sign) || (/\p{L}$/u.test(one) && /^\p{Ll}/u.test(other) && !known.has(`${one}-${other}`.toLowerCase()));
    return isCut ? one + other : `${one}-${other}`;
  });

/** Cuts lines into one passage, or several if they are long. */
function* cut(lines) {
  let passage = "";
  const pieces = lines.flatMap((line) => [...sentencesOf(line)].map(({ text }) => text));
  for (const piece of pieces.flatMap(inParts)) {
    if (passage && displayWidth(passage) + displayWidth(piece) > PASSAGE_LENGTH) {
      yield passage;
      passage = "";
    }
    passage = `${passage} ${piece.trim()}`.trim();
  }
  if (LETTER.test(passage)) yield passage;
}

/** The sentences of a text, with their places; together they are the text. @param {string} text */
export function* sentencesOf(text) {
  let start = 0;
  for (const { index, segment } of sentences.segment(text)) {
    const end = index + segment.length;
    if (end < text.length && UNFINISHED.test(text.slice(Math.max(start, end - 20), end))) continue;
    yield { start, end, text: text.slice(start, end) };
    start = end;
  }
}

/** A long text in parts. @param {string} line @returns {string[]} */
export function inParts(line) {
  const parts = [];
  let start = 0;
  while (line.length - start > LONGEST) {
    const end = start + endOfPart(line.slice(start, start + LONGEST));
    parts.push(line.slice(start, end).trim());
    start = end;
  }
  return [...parts, line.slice(start).trim()];
}

/** Where a part ends best: before its last sentence, which continues in the next part, otherwise at white space, otherwise between any characters. */
function endOfPart(beginning) {
  const sentence = [...sentencesOf(beginning)].at(-1).start;
  const space = beginning.search(/\s\S*$/);
  const between = /[\uD800-\uDBFF]$/.test(beginning) ? LONGEST - 1 : LONGEST;
  return [sentence, space].find((end) => end > LONGEST / 2) ?? between;
}

/** The paragraphs, headings, items of lists, rows of tables and pieces of code of a text. @returns {Generator<Block>} */
function* blocksOf(lines) {
  const fresh = () => ({ kind: "text", level: 0, lines: [] });
  let [block, names] = [fresh(), []]; // names of a table's columns
  for (const [mark, line, level] of marked(lines)) {
    if (mark === "underline") {
      if (block.kind === "text" && block.lines.length === 1) {
        yield { ...block, kind: "heading", level };
        block = fresh();
      }
      continue;
    }
    const continues = mark === "text" ? ["text", "item"].includes(block.kind) : mark === "code" && block.kind === "code";
    if (block.lines.length && !continues) {
      yield block;
      block = fresh();
    }
    if (mark === "header") names = cellsOf(line);
    else if (mark === "row") block = { kind: mark, level, lines: [namedCells(cellsOf(line), names)] };
    else if (mark) {
      if (!block.lines.length) block = { kind: mark, level, lines: [] };
      block.lines.push(line);
    }
    if (mark !== "header" && mark !== "row") names = [];
  }
  if (block.lines.length) yield block;
}

/** The kind and text of each line, and the level of a heading. */
function* marked(lines) {
  let fence = ""; // the one that is open
  for (const [i, raw] of lines.entries()) {
    const line = raw.replace(CONTROL, " ");
    const [, item, signs, rest] = FENCE.exec(line) ?? [];
    if (signs && (!fence || (!item && !rest.trim() && signs.startsWith(fence)))) {
      fence = fence ? "" : signs;
      yield ["", "", 0];
    } else if (fence && line.trim()) yield ["code", line, 0];
    else if (!ROW.test(line) || !UNDER_HEADER.test(line)) yield markOf(line, lines[i + 1] ?? "");
  }
}

function markOf(line, following) {
  const heading = HEADING.exec(line);
  if (heading) {
    const text = heading[2].trimEnd().replace(HEADING_END, "").trimEnd();
    return [text ? "heading" : "", text, heading[1].length];
  }
  const [, sign] = JAPANESE_HEADING.exec(line) ?? [];
  if (sign && following.trim() && !following.trimStart().startsWith(sign)) return ["heading", line.replace(/^[\s■□◆◇●▼▽]+|[\s：:]+$/g, ""), 6];
  if (UNDERLINE.test(line)) return ["underline", "", line.startsWith("=") ? 1 : 2];
  if (!line.trim() || RULE.test(line)) return ["", "", 0];
  if (ROW.test(line)) return [ROW.test(following) && UNDER_HEADER.test(following) ? "header" : "row", line, 0];
  const own = line.replace(QUOTE, "");
  if (ITEM.test(own)) return ["item", own.replace(BOX, "$1"), 0];
  return [COMMAND.test(own) ? "code" : "text", own, 0];
}

const cellsOf = (row) =>
  row.trim().replace(/^\|+|\|+$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));

/** The cells of a row, separated, each with the name of its column. @param {string[]} cells @param {string[]} names */
const namedCells = (cells, names) =>
  cells
    .map((cell, i) => (cell && names[i] ? `${names[i]}: ${cell}` : cell))
    .filter(Boolean)
    .join(" · ");
