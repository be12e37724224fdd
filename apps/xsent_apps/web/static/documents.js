// The panel of texts: pasting, dropping, choosing and removing them, and the progress of encoding them.

import { byId, counted, dot, make } from "./dom.js";
import { EXAMPLE_TEXTS } from "./examples.js";
import { forget, keep, kept } from "./shelf.js";
import { readFile } from "./texts.js";

const REPORT_EVERY = 500; // milliseconds, at least, between reports of progress

/**
 * @param {import("./library.js").Library} library @param {(message: string) => void} warn shows a line to the reader
 * @param {boolean} isFirst whether this is the first visit, which shows the example
 */
export function openDocuments(library, warn, isFirst) {
  let reported = 0; // time of the last report
  let shown = []; // texts of the example that nobody asked for
  const paste = byId("paste");

  /** Adds a text in the place of a former one, or else of the example that nobody asked for. */
  function add(source, former) {
    const unasked = former ? [] : shown.filter((one) => library.documents.includes(one));
    library.add(source, former ?? unasked[0]);
    for (const one of unasked.slice(1)) library.remove(one);
    if (!former) shown = [];
  }

  function addExample() {
    const here = new Set(library.documents.map(({ name }) => name));
    for (const [name, text] of Object.entries(EXAMPLE_TEXTS)) if (!here.has(name)) library.add({ name, text });
    byId("adding").open = false;
  }

  function take(source, former) {
    try {
      add(source, former);
      warn("");
      return true;
    } catch (error) {
      warn(error.message);
      return false;
    }
  }

  function freeName() {
    const taken = new Set(library.documents.map(({ name }) => name));
    let number = 1;
    while (taken.has(`Text ${number}`)) number++;
    return `Text ${number}`;
  }

  async function takeFiles(files) {
    const refused = [];
    for (const file of files) {
      try {
        add(await readFile(file));
      } catch (error) {
        refused.push(error.message);
      }
    }
    warn(refused.join(" "));
    if (refused.length < files.length) byId("adding").open = false;
  }

  function addPasted() {
    if (!paste.value.trim()) {
      warn("There is nothing to add; paste or write some text first.");
      paste.focus();
    } else if (take({ name: freeName(), text: paste.value })) {
      paste.value = "";
      byId("adding").open = false;
      byId("query").focus();
    }
  }

  byId("add").addEventListener("click", addPasted);
  paste.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) addPasted();
  });
  byId("choose").addEventListener("click", () => byId("files").click());
  byId("files").addEventListener("change", async ({ target }) => {
    await takeFiles([...target.files]);
    target.value = ""; // so that the same file can be chosen again
  });
  byId("example").addEventListener("click", () => {
    addExample();
    shown = []; // now it is asked for
    byId("query").focus();
  });
  listenToDrops(takeFiles, (text) => take({ name: freeName(), text }));
  keepIfTicked(library, take, warn).then((kept) => {
    if (!isFirst || kept || library.documents.length) return;
    addExample();
    shown = [...library.documents];
  });
  library.addEventListener("listed", () => {
    byId("documents").replaceChildren(...library.documents.map((document) => entry(library, document, take)));
    byId("example").classList.toggle("first", !library.documents.length);
  });
  library.addEventListener("progress", ({ detail: { done, total } }) => {
    if (done && done < total && performance.now() - reported < REPORT_EVERY) return;
    reported = performance.now();
    byId("encoding").textContent = `Reading: ${done.toLocaleString("en")} of ${counted(total, "passage")}`;
  });
  library.addEventListener("idle", () => (byId("encoding").textContent = remarks(library)));
}

/** Stores the texts in the browser while the box is ticked, and adds those already stored; returns whether there are any. */
async function keepIfTicked(library, take, warn) {
  const box = byId("keep");
  const cannot = ({ message }) => warn(`This browser cannot keep texts: ${message}`);
  let refused = []; // they stay stored
  const save = () =>
    (box.checked ? keep([...refused, ...library.documents.map(({ source }) => source)]) : forget()).catch(cannot);
  box.addEventListener("change", save);
  const sources = await kept().catch(() => undefined);
  box.checked = sources !== undefined;
  refused = (sources ?? []).filter((source) => !take(source));
  if (refused.length) warn(`Kept, but could not be read again: ${refused.map(({ name }) => name).join(", ")}.`);
  if (sources?.length) byId("adding").open = false;
  library.addEventListener("listed", () => box.checked && save());
  return box.checked;
}

function listenToDrops(takeFiles, takeText) {
  const holdsSomething = ({ dataTransfer }) => [...dataTransfer.types].some((type) => /Files|text\/plain/.test(type));
  const hover = (over) => document.body.classList.toggle("dropping", over);
  addEventListener("dragover", (event) => {
    if (!holdsSomething(event)) return;
    event.preventDefault();
    hover(event.dataTransfer.types.includes("Files"));
  });
  addEventListener("dragleave", ({ relatedTarget }) => relatedTarget || hover(false));
  addEventListener("drop", (event) => {
    hover(false);
    const files = [...event.dataTransfer.files];
    const intoField = event.target.closest?.("textarea, input");
    if (!files.length && intoField) return; // the browser inserts the text there
    event.preventDefault();
    if (files.length) takeFiles(files);
    else if (event.dataTransfer.getData("text/plain").trim()) takeText(event.dataTransfer.getData("text/plain"));
  });
}

function entry(library, document, take) {
  const { name, colour, passages } = document;
  const [count, noun] = counted(passages.length, "passage").split(" ");
  const remove = () => {
    library.remove(document);
    (byId("documents").querySelector("button") ?? byId("paste")).focus();
  };
  return make(
    "li",
    {},
    dot(colour),
    make("span", { className: "name" }, name),
    ...(document.columns ? choices(document, take) : []),
    make("span", { className: "quiet" }, count, make("span", { className: "unseen" }, ` ${noun}`)),
    make("button", { type: "button", className: "link", ariaLabel: `Remove ${name}`, onclick: remove }, "×"),
  );
}

/** The choice of a table's columns; a change reads the table again. */
function choices(document, take) {
  const { name, source, columns } = document;
  const choice = (key, label, ...before) => {
    const texts = [...before, ...columns.map((text, i) => text || `column ${i + 1}`)];
    const options = texts.map((text, i) => make("option", { value: i - before.length }, text));
    const change = () => {
      const changed = { ...source, column: document.column, id: document.id, [key]: Number(select.value) };
      if (!take(changed, document)) select.value = document[key];
      byId(select.id).focus();
    };
    const select = make("select", { id: `${key} of ${name}`, ariaLabel: `${label} of ${name}`, onchange: change }, ...options);
    select.value = document[key];
    return select;
  };
  return [choice("column", "Column with the texts"), choice("id", "Column with the ids", "no ids")];
}

/** A summary of how the texts were read. */
function remarks(library) {
  if (!library.documents.length) return "";
  const long = library.read.filter(({ encoded }) => encoded.windows > 1).length;
  const unknown = library.read.filter(({ encoded }) => encoded.unknown).length;
  return [
    `${counted(library.passages.length, "passage")}.`,
    long ? `${counted(long, "passage")} too long to read at once; read in parts and averaged.` : "",
    unknown ? `${counted(unknown, "passage")} mostly in characters that the model does not know.` : "",
  ].join(" ");
}
