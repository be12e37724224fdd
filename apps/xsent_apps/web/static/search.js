// The search panel: passages by meaning and by words, while a query is typed.

import { bar, byId, counted, dot, growingList, later, make } from "./dom.js";
import { EXAMPLE_TEXTS } from "./examples.js";
import { nearestPart, nearestSentence } from "./highlight.js";
import { headingsOf } from "./passages.js";
import { saveCsv } from "./table.js";
import { CLOSE, MOST, rank, toReadAgain, withNearWords } from "./xsent/search.js";

const FOUND = 50;
const SHOWN = 8; // results at first
const MARKED = 6; // results in which the nearest words are marked
const SUGGESTIONS = ["Wo kann ich mein Fahrrad abstellen?", "quand passe le train", "il cane non vuole mangiare", "明日の天気"];

/** @param {import("./model.js").Model} model @param {import("./library.js").Library} library */
export function openSearch(model, library) {
  const input = byId("query");
  let asked = new AbortController();
  /** @type {import("./model.js").Encoded | undefined} */
  let query;
  let best = []; // results

  async function ask() {
    asked.abort();
    asked = new AbortController();
    const { signal } = asked;
    const text = input.value.trim();
    const start = performance.now();
    const [encoded] = text ? ((await model.encode([text], { urgent: true, query: true, signal })) ?? []) : [];
    if (signal.aborted) return;
    query = encoded?.windows ? encoded : undefined;
    await show(start);
    if (signal.aborted) return;
    input.dispatchEvent(new CustomEvent("asked", { detail: { vector: query?.vector } }));
  }

  byId("save-hits").addEventListener("click", () => {
    const rows = best.map(({ score, passage: { text, id, context, document } }) =>
      [input.value.trim(), score.toFixed(4), text, id, context, document.name],
    );
    saveCsv("hits.csv", ["query", "score", "text", "id", "context", "source"], rows);
  });

  async function show(start) {
    const { signal } = asked;
    const hasExample = library.documents.some(({ name }) => name in EXAMPLE_TEXTS);
    byId("suggestions").hidden = !hasExample || input.value.trim() !== ""; // they are about the example
    const found = query ? rank(library.read, query) : [];
    const texts = toReadAgain(found).map(({ passage: { context, text } }) => `${context} ${text}`);
    const ranked = withNearWords(found, texts.length ? await model.nearness(input.value.trim(), texts) : []);
    if (signal.aborted) return;
    best = ranked.slice(0, FOUND);
    byId("save-hits").hidden = !best.length;
    byId("results").replaceChildren(...growingList(best, (result) => render(result, similar), SHOWN));
    const took = start ? `, in ${Math.ceil(performance.now() - start)} ms` : "";
    byId("found").textContent = query ? verdict(ranked, library, took) : "";
    const close = best.filter(({ score }) => score >= CLOSE);
    if (close.length) refine(close.slice(0, MARKED), query.vector, signal);
  }

  /** Marks the nearest words in the first results. */
  const refine = later(async (close, vector, signal) => {
    const items = byId("results").querySelectorAll("li");
    for (const [i, { passage }] of close.entries()) {
      if (signal.aborted) return;
      const sentence = await nearestSentence(model, vector, passage.text, signal);
      const part = sentence && (await nearestPart(model, vector, sentence, signal));
      if (signal.aborted) return;
      if (items[i]?.isConnected) items[i].querySelector("p").replaceChildren(...marked(passage.text, sentence, part));
    }
  }, 200);

  function similar(text) {
    input.value = text;
    input.focus();
    ask();
  }

  for (const text of SUGGESTIONS) {
    byId("suggestions").append(make("button", { type: "button", className: "chip", onclick: () => similar(text) }, text));
  }
  input.addEventListener("input", later(ask, 40));
  library.addEventListener("changed", later(() => show(), 60));
  show();
  return { similar };
}

function verdict(ranked, library, took) {
  if (!library.documents.length) return "There is nothing to search yet; add texts above, or try the example.";
  if (!ranked.length) return "The texts are being read…";
  const read = counted(ranked.length, "passage");
  const among = ranked.length < library.passages.length ? `of the ${read} read so far` : `of ${read}`;
  const nearest = `Nearest ${among}${took}:`;
  if (ranked[0].score >= CLOSE) return nearest;
  const [best, limit] = [Math.min(ranked[0].score, CLOSE - 0.01), CLOSE].map((score) => score.toFixed(2));
  return `No close match: best score ${best}; unrelated texts score up to ${limit}. ${nearest}`;
}

function render({ passage, score }, similar) {
  const { text, context, id, document } = passage;
  const about = `Cosine of query and passage, plus up to ${MOST - 1} for words of the query and words near to them`;
  return make(
    "li",
    {},
    make("div", { className: "quiet", dir: "auto" }, id || headingsOf(context)),
    make("p", { dir: "auto" }, text),
    make(
      "div",
      { className: "row quiet" },
      bar(score / MOST),
      make("span", { className: "number", title: about }, score.toFixed(2)),
      dot(document.colour),
      make("span", { className: "name" }, document.name),
      make("button", { type: "button", className: "link", onclick: () => similar(text) }, "More like this"),
    ),
  );
}

/** A text with its nearest sentence marked, if it has several, and the nearest words in it. */
function marked(text, sentence, part) {
  const end = sentence.start + sentence.text.length;
  const inner = part
    ? [
        sentence.text.slice(0, part.start),
        make("strong", {}, sentence.text.slice(part.start, part.end)),
        sentence.text.slice(part.end),
      ]
    : [sentence.text];
  const middle = sentence.text === text ? inner : [make("mark", {}, ...inner)];
  return [text.slice(0, sentence.start), ...middle, text.slice(end)];
}
