// The panel that finds: passages nearest to a query, as it is typed.

import { bar, byId, counted, growingList, later, make } from "./dom.js";
import { cosine } from "./model.js";
import { nearestPart } from "./highlight.js";

const FOUND = 50;
const SHOWN = 8; // at first
const MARKED = 6; // results whose nearest words are looked for
const CLOSE = 0.3; // cosine below which nothing is really near
const SUGGESTIONS = ["Wo kann ich mein Fahrrad abstellen?", "quand passe le train", "il mio cane è malato", "明日の天気"];

/** @param {import("./model.js").Model} model @param {import("./library.js").Library} library */
export function openSearch(model, library) {
  const input = byId("query");
  let asked = new AbortController();
  /** @type {Float32Array | undefined} */
  let vector;

  async function ask() {
    asked.abort();
    asked = new AbortController();
    const { signal } = asked;
    const text = input.value.trim();
    const start = performance.now();
    const [encoded] = text ? ((await model.encode([text], { urgent: true, signal })) ?? []) : [];
    if (signal.aborted) return;
    vector = encoded?.vector;
    show(start);
    input.dispatchEvent(new CustomEvent("asked", { detail: { text, vector } }));
  }

  function show(start) {
    byId("suggestions").hidden = !library.documents.length || input.value.trim() !== "";
    const ranked = vector ? rank(library.passages, vector) : [];
    const best = ranked.slice(0, FOUND);
    byId("results").replaceChildren(...growingList(best, (result) => render(result, similar), SHOWN));
    const took = start ? `, in ${Math.ceil(performance.now() - start)} ms` : "";
    byId("found").textContent = vector ? verdict(ranked, library, took) : "";
    if (best.length) refine();
  }

  const refine = later(async () => {
    const { signal } = asked;
    const query = vector;
    const items = byId("results").querySelectorAll("li");
    const near = rank(library.passages, query).filter(({ score }) => score >= CLOSE);
    for (const [i, { passage, sentence }] of near.slice(0, MARKED).entries()) {
      const part = await nearestPart(model, query, sentence, signal);
      if (signal.aborted || query !== vector) return;
      if (part && items[i]?.isConnected) items[i].querySelector("p").replaceChildren(...marked(passage, sentence, part));
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

/** Passages by their nearest sentence, best first; those without vectors yet are left out. */
function rank(passages, query) {
  const results = [];
  for (const passage of passages) {
    let [score, sentence] = [-2, undefined];
    for (const one of passage.sentences) {
      const own = one.encoded ? cosine(query, one.encoded.vector) : -2;
      if (own > score) [score, sentence] = [own, one];
    }
    if (sentence) results.push({ passage, sentence, score });
  }
  return results.sort((a, b) => b.score - a.score);
}

function verdict(ranked, library, took) {
  if (!library.documents.length) return "There is nothing to search yet: add texts above, or try the example.";
  if (!ranked.length) return "The texts are being read…";
  const read = counted(ranked.length, "passage");
  const among = ranked.length < library.passages.length ? `of the ${read} read so far` : `of ${read}`;
  if (ranked[0].score < CLOSE) return `Nothing ${among} is really close to that. Nearest${took}:`;
  return `Nearest ${among}${took}:`;
}

function render({ passage, sentence, score }, similar) {
  const whole = passage.sentences.length === 1;
  return make(
    "li",
    {},
    make("p", { dir: "auto" }, ...(whole ? [passage.text] : marked(passage, sentence))),
    make(
      "div",
      { className: "row quiet" },
      bar(score),
      make("span", { className: "number", title: "Cosine of query and sentence" }, score.toFixed(2)),
      make("span", { className: `dot c${passage.document.colour % 9}`, ariaHidden: "true" }),
      make("span", { className: "name" }, passage.document.name),
      make("button", { type: "button", className: "link", onclick: () => similar(sentence.text) }, "More like this"),
    ),
  );
}

/** A passage with its nearest sentence marked and, in it, the nearest words. */
function marked(passage, sentence, part) {
  const { text } = passage;
  const at = sentence.start + text.slice(sentence.start).indexOf(sentence.text);
  const end = at + sentence.text.length;
  const inner = part
    ? [
        sentence.text.slice(0, part.start),
        make("strong", {}, sentence.text.slice(part.start, part.end)),
        sentence.text.slice(part.end),
      ]
    : [sentence.text];
  const middle = passage.sentences.length > 1 ? [make("mark", {}, ...inner)] : inner;
  return [text.slice(0, at), ...middle, text.slice(end)];
}
