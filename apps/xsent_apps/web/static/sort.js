// The panel that sorts: labels with a few examples, a head trained on them in the page, and a label for each passage.

import { bar, byId, counted, growingList, later, make } from "./dom.js";
import { EXAMPLE_LABELS } from "./examples.js";
import { fit, predict } from "./logistic.js";

const SHOWN = 5; // passages of a label, at first
const UNSURE = 0.5;

/** @param {import("./model.js").Model} model @param {import("./library.js").Library} library */
export function openSort(model, library) {
  let trained = new AbortController();

  const train = later(async () => {
    trained.abort();
    trained = new AbortController();
    const { signal } = trained;
    const labels = read();
    if (labels.length < 2) {
      say(labels.length ? "One more label with an example, and sorting starts." : "");
      return;
    }
    const texts = labels.flatMap(({ examples }) => examples);
    const classes = labels.flatMap(({ examples }, k) => examples.map(() => k));
    const encoded = await model.encode(texts, { urgent: true, signal });
    if (!encoded) return;
    const vectors = encoded.map(({ vector }) => vector);
    show(labels, fit(vectors, classes, labels.length), texts.length);
  }, 150);

  function show(labels, head, examples) {
    const groups = labels.map(() => []);
    for (const passage of library.read) {
      const shares = predict(head, passage.encoded.vector);
      const k = shares.indexOf(Math.max(...shares));
      groups[k].push({ passage, share: shares[k] });
    }
    const sorted = groups.reduce((sum, group) => sum + group.length, 0);
    say(
      sorted
        ? `${counted(sorted, "passage")} sorted by ${counted(examples, "example")}, surest first.`
        : "The labels are learnt. Add texts above, and they are sorted.",
    );
    const names = labels.map(({ name }) => name);
    byId("groups").replaceChildren(...groups.map((group, k) => renderGroup(names, k, group, teach)));
  }

  function say(text) {
    byId("sorted").textContent = text;
    byId("groups").replaceChildren();
  }

  /** Makes a passage an example of a label. */
  function teach(passage, name) {
    const card = [...byId("labels").children].find((one) => one.querySelector("input").value.trim() === name);
    const area = card.querySelector("textarea");
    area.value = `${area.value.trim()}\n${passage.text}`.trim();
    train();
  }

  function addLabel({ name, examples }) {
    byId("labels").append(renderLabel(name, examples, train));
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
  byId("labels").addEventListener("input", train);
  library.addEventListener("changed", train);
  addLabel({ name: "", examples: [] });
  addLabel({ name: "", examples: [] });
}

/** Labels that have an example; one without a name is called by its number. */
function read() {
  return [...byId("labels").children]
    .map((card, i) => ({
      name: card.querySelector("input").value.trim() || `Label ${i + 1}`,
      examples: card.querySelector("textarea").value.split("\n").map((line) => line.trim()).filter(Boolean),
    }))
    .filter(({ examples }) => examples.length);
}

function renderLabel(name, examples, train) {
  const remove = () => {
    card.remove();
    train();
    byId("add-label").focus();
  };
  const card = make(
    "fieldset",
    {},
    make("label", {}, "Label ", make("input", { value: name, autocomplete: "off" })),
    make(
      "label",
      {},
      "Examples, one a line ",
      make("textarea", { rows: 3, value: examples.join("\n"), spellcheck: false }),
    ),
    make("button", { type: "button", className: "link", onclick: remove }, "Remove"),
  );
  return card;
}

function renderGroup(names, k, group, teach) {
  const best = group.sort((a, b) => b.share - a.share);
  const render = ({ passage, share }) => renderPassage(names, k, passage, share, teach);
  return make(
    "section",
    { className: "group" },
    make("h3", {}, names[k], " ", make("span", { className: "quiet" }, String(best.length))),
    ...growingList(best, render, SHOWN),
  );
}

function renderPassage(names, k, passage, share, teach) {
  const choice = make(
    "select",
    { ariaLabel: "Label; another one teaches it", onchange: () => teach(passage, choice.value) },
    ...names.map((name, i) => make("option", { selected: i === k }, name)),
  );
  const text = make("p", { dir: "auto" }, passage.text);
  const sureness = make("span", { className: "number" }, `${Math.round(100 * share)} %`);
  const row = make("div", { className: "row quiet" }, bar(share), sureness, choice);
  if (share < UNSURE) row.append(make("span", {}, "unsure"));
  return make("li", {}, text, row);
}
