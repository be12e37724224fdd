// The sorting panel: labels with descriptions and examples, and for each passage its label, or none of these.

import { bar, byId, counted, growingList, later, make } from "./dom.js";
import { EXAMPLE_LABELS } from "./examples.js";
import { answer, headOf } from "./head.js";
import { saveCsv } from "./table.js";

const SHOWN = 5; // passages per label at first
const UNSURE = 0.5;
const NONE = "None of these";

/** @param {import("./model.js").Model} model @param {import("./library.js").Library} library */
export function openSort(model, library) {
  let trained = new AbortController();
  let groups = []; // per label, and for none of them: name, and passages with their probabilities
  const wide = matchMedia("(min-width: 45rem)");

  const train = later(async () => {
    trained.abort();
    trained = new AbortController();
    const { signal } = trained;
    const labels = read();
    if (labels.length < 2) {
      put([], labels.length ? "Add one more label to start sorting." : "");
      return;
    }
    const texts = labels.flatMap(({ description, examples }) => [description, ...examples]);
    const encoded = await model.encode(texts, { urgent: true, signal });
    if (!encoded) return;
    const vectors = encoded.map(({ vector }) => vector);
    const known = labels.map(({ description, examples }) => {
      const [first, ...others] = vectors.splice(0, examples.length + 1);
      return { description: description ? first : undefined, examples: others };
    });
    sort(labels, headOf(known), texts.filter(Boolean).length);
  }, 150);

  function sort(labels, head, learnt) {
    const sorted = [...labels.map(({ name }) => ({ name, found: [] })), { name: NONE, found: [] }];
    for (const passage of library.read) {
      const { label, share } = answer(head, passage.encoded.vector);
      sorted.at(label).found.push({ passage, share: label < 0 ? undefined : share });
    }
    for (const { found } of sorted) found.sort((a, b) => b.share - a.share);
    const count = counted(library.read.length, "passage");
    const message = `${count} sorted by ${learnt} descriptions and examples, surest first.`;
    put(sorted, library.read.length ? message : "Add texts above to sort them.");
  }

  function put(sorted, message) {
    groups = sorted.filter(({ name, found }) => name !== NONE || found.length);
    const names = groups.map(({ name }) => name);
    byId("sorted").textContent = message;
    byId("groups").replaceChildren(...groups.map((group) => renderGroup(names, group, teach)));
    byId("save-labels").hidden = !library.read.length || !groups.length;
  }

  /** Adds a passage to the examples of a label. */
  function teach(passage, name) {
    const card = [...byId("labels").children].find((one, i) => labelOf(one, i).name === name);
    const area = card?.querySelector("textarea");
    if (!area) return; // its label has just been renamed
    area.value = `${area.value.trim()}\n${passage.text.replace(/\s+/g, " ")}`.trim();
    area.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function addLabel({ name, examples }) {
    byId("labels").append(renderLabel(name, examples, wide.matches || !name, train));
  }

  byId("add-label").addEventListener("click", () => {
    addLabel({ name: "", examples: [] });
    byId("labels").lastElementChild.querySelector("input").focus();
  });
  byId("example-labels").addEventListener("click", () => {
    byId("labels").replaceChildren();
    EXAMPLE_LABELS.forEach(addLabel);
    train();
  });
  byId("save-labels").addEventListener("click", () => {
    const rows = groups.flatMap(({ name, found }) =>
      found.map(({ passage, share }) => [passage.id, name === NONE ? "unknown" : name, share?.toFixed(4) ?? "", passage.text]),
    );
    saveCsv("labels.csv", ["id", "label", "probability", "text"], rows);
  });
  wide.addEventListener("change", () => {
    for (const card of byId("labels").children) card.open = wide.matches;
  });
  byId("labels").addEventListener("input", train);
  library.addEventListener("changed", train);
  addLabel({ name: "", examples: [] });
  addLabel({ name: "", examples: [] });
  const labelled = () => groups.filter(({ name }) => name !== NONE);
  return { labels: () => new Map(labelled().flatMap(({ name, found }) => found.map(({ passage }) => [passage, name]))) };
}

/** The content of a card; the name is the text before a colon, and a label without a name is numbered. */
function labelOf(card, i) {
  const description = card.querySelector("input").value.trim();
  const lines = card.querySelector("textarea").value.split("\n");
  const examples = lines.map((line) => line.trim()).filter(Boolean);
  return { name: description.split(":")[0].trim() || `Label ${i + 1}`, description, examples };
}

/** Labels that have a description or an example. */
const read = () =>
  [...byId("labels").children].map(labelOf).filter(({ description, examples }) => description || examples.length);

function renderLabel(name, examples, open, train) {
  const remove = () => {
    card.remove();
    train();
    byId("add-label").focus();
  };
  const title = () => {
    const { name: given, examples: lines } = labelOf(card, [...byId("labels").children].indexOf(card));
    summary.textContent = `${given}, ${counted(lines.length, "example")}`;
  };
  const summary = make("summary", {}, `${name || "New label"}, ${counted(examples.length, "example")}`);
  const card = make(
    "details",
    { open, oninput: title, ontoggle: title },
    summary,
    make("label", {}, "Label, or “label: description” ", make("input", { value: name, autocomplete: "off" })),
    make(
      "label",
      {},
      "Examples, one per line ",
      make("textarea", { rows: 3, value: examples.join("\n"), spellcheck: false }),
    ),
    make("button", { type: "button", className: "link", onclick: remove }, "Remove"),
  );
  return card;
}

function renderGroup(names, { name, found }, teach) {
  return make(
    "section",
    { className: "group" },
    make("h3", {}, name, " ", make("span", { className: "quiet" }, String(found.length))),
    ...growingList(found, (one) => renderPassage(names, name, one, teach), SHOWN),
  );
}

function renderPassage(names, name, { passage, share }, teach) {
  const options = names.map((one) => make("option", { selected: one === name, disabled: one === NONE }, one));
  const choice = make(
    "select",
    { ariaLabel: "Label; choose another one to add it as an example", onchange: () => teach(passage, choice.value) },
    ...options,
  );
  const row = make("div", { className: "row quiet" }, choice);
  if (share !== undefined) {
    row.prepend(bar(share), make("span", { className: "number" }, `${Math.round(100 * share)} %`));
    if (share < UNSURE) row.append(make("span", {}, "unsure"));
  }
  return make("li", {}, make("p", { dir: "auto" }, passage.text), row);
}
