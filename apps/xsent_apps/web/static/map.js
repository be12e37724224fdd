// The panel with the map: lays out the passages when it is opened, and handles mouse, touch and keys.

import { byId, counted, cut, dot, later, make, save } from "./dom.js";
import { cosine } from "./xsent/search.js";
import { saveCsv } from "./table.js";
import { View } from "./view.js";

const MOST = 3000; // most passages; of more, an evenly spaced sample is shown
const LINKED = 4; // neighbours shown
const SHOWN = 200; // most characters shown of a passage that is pointed at
const HINT = "Point at a passage to read it, with its neighbours.";
const RINGED = 5; // passages nearest to the query

/**
 * @param {import("./model.js").Model} model @param {import("./library.js").Library} library
 * @param {(text: string) => void} search @param {() => Map<object, string>} labels of the passages
 */
export function openMap(model, library, search, labels) {
  const canvas = byId("canvas");
  const view = new View(canvas);
  let shown = []; // the passages of the points
  let grouped = []; // the name of each one's group
  let query;
  let worker;

  const layOut = later(() => {
    if (byId("map").hidden) return;
    const all = library.read;
    const every = Math.ceil(all.length / MOST) || 1;
    const taken = all.filter((_, i) => i % every === 0);
    worker?.terminate();
    if (taken.length && taken.length === shown.length && taken.every((passage, i) => passage === shown[i])) {
      showText(HINT);
      return colour();
    }
    if (!taken.length) {
      put([], { places: [], neighbours: [], each: 0, labels: [], names: [] });
      showText(library.documents.length ? "The texts are being read…" : "There is nothing to map yet; add texts above.");
      return;
    }
    showText(`Laying out ${counted(taken.length, "passage")}…`);
    const dim = taken[0].encoded.vector.length;
    const vectors = new Float32Array(taken.length * dim);
    taken.forEach(({ encoded }, i) => vectors.set(encoded.vector, i * dim));
    const texts = taken.map(({ text }) => text);
    const started = new Worker(new URL("layout-worker.js", import.meta.url), { type: "module" });
    started.onmessage = ({ data }) => {
      put(taken, data);
      showText(every > 1 ? `${counted(taken.length, "passage")} of ${all.length.toLocaleString("en")} are shown.` : HINT);
    };
    worker = started;
    model.rarities(texts).then((rarities) => started.postMessage({ vectors, dim, texts, rarities }, [vectors.buffer]));
  }, 150);

  function put(taken, { places, neighbours, each, labels: numbers, names }) {
    shown = taken;
    grouped = numbers.map((number) => names[number] ?? "");
    view.points = taken.map(({ text }, i) => ({
      x: places[2 * i],
      y: places[2 * i + 1],
      text,
      neighbours: [...neighbours.slice(i * each, i * each + Math.min(LINKED, each))],
    }));
    view.chosen = -1;
    colour();
    view.showAll();
    canvas.dataset.points = String(taken.length);
  }

  /** The group of each point in the chosen colouring; empty means none. */
  function colouring() {
    const of = labels();
    if (byId("colouring").value === "label") return shown.map((passage) => of.get(passage) ?? "");
    return byId("colouring").value === "text" ? shown.map(({ document }) => document.name) : grouped;
  }

  function colour() {
    const isSorted = labels().size > 0;
    byId("colouring").querySelector("[value=label]").disabled = !isSorted;
    if (!isSorted && byId("colouring").value === "label") byId("colouring").value = "group";
    const of = colouring();
    const isText = byId("colouring").value === "text"; // then the colours are those of the list of texts
    const names = isText ? library.documents.map(({ name }) => name) : bySize(of);
    const colours = isText ? library.documents.map((document) => document.colour) : [...names.keys()];
    const legend = colourBy(view, names, of.map((name) => names.indexOf(name)), colours);
    byId("legend").replaceChildren(...legend);
    ring();
    view.draw();
  }

  function ring() {
    const near = query ? shown.map(({ encoded }, i) => [cosine(query, encoded.vector), i]) : [];
    view.ringed = new Set(near.sort((a, b) => b[0] - a[0]).slice(0, RINGED).map(([, i]) => i));
    byId("ringed").hidden = !near.length;
    byId("ringed").textContent = `◯ Circled points are the ${view.ringed.size} nearest to “${byId("query").value.trim()}”.`;
  }

  function showText(text) {
    byId("pointed").replaceChildren(text);
  }

  function choose(index, follow) {
    if (index === view.chosen) return;
    view.choose(index, follow);
    const point = view.points[index];
    if (!point) return showText(HINT);
    const near = point.neighbours.map((i) => make("li", { dir: "auto" }, cut(view.points[i].text, SHOWN)));
    const from = make("span", { className: "quiet" }, ` ${shown[index].document.name}; near it:`);
    byId("pointed").replaceChildren(make("strong", { dir: "auto" }, cut(point.text, SHOWN)), from, make("ul", {}, ...near));
  }

  const enter = () => view.points[view.chosen] && search(view.points[view.chosen].text);
  listenToAll(canvas, view, choose, enter);
  byId("colouring").addEventListener("change", colour);
  byId("save-map").addEventListener("click", () => {
    const of = colouring();
    const rows = view.points.map(({ x, y, text }, i) => [x.toFixed(4), y.toFixed(4), of[i], text, shown[i].id]);
    saveCsv("map.csv", ["x", "y", byId("colouring").value, "text", "id"], rows);
  });
  byId("save-picture").addEventListener("click", async () => save("map.png", await view.toPng()));
  byId("query").addEventListener("asked", ({ detail }) => {
    query = detail.vector;
    ring();
    view.draw();
  });
  library.addEventListener("changed", layOut);
  return { layOut };
}

/** The non-empty names, most frequent first. @param {string[]} of @returns {string[]} */
function bySize(of) {
  const counts = new Map();
  for (const name of of) if (name) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a));
}

/**
 * Colours the points by group and places the groups' names in their middles; returns the items of the legend.
 * @param {View} view @param {string[]} names of the groups @param {number[]} of the group of each point, -1 for none
 */
function colourBy(view, names, of, colours = [...names.keys()]) {
  const members = names.map(() => []);
  of.forEach((group, i) => {
    view.points[i].colour = colours[group] ?? -1;
    members[group]?.push(view.points[i]);
  });
  const middle = (points, axis) => points.map((point) => point[axis]).sort((a, b) => a - b)[points.length >> 1];
  const found = [...names.keys()].filter((group) => members[group].length);
  view.names = found.map((group) => ({ name: names[group], x: middle(members[group], "x"), y: middle(members[group], "y") }));
  const none = of.filter((group) => group < 0).length;
  const item = (name, count, colour) => make("li", { dir: "auto" }, dot(colour), `${name} (${count.toLocaleString("en")})`);
  const items = found.map((group) => item(names[group], members[group].length, colours[group]));
  return none ? [...items, item("none", none, -1)] : items;
}

function listenToAll(canvas, view, choose, enter) {
  listenToKeys(canvas, view, choose, enter);
  listenToPointers(canvas, view, choose);
  byId("zoom-in").addEventListener("click", () => view.zoomBy(1.5));
  byId("zoom-out").addEventListener("click", () => view.zoomBy(1 / 1.5));
  byId("zoom-all").addEventListener("click", () => view.showAll());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view.draw());
  new ResizeObserver(() => view.showAll()).observe(canvas);
}

function listenToKeys(canvas, view, choose, enter) {
  const directions = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const others = {
    "+": () => view.zoomBy(1.3),
    "=": () => view.zoomBy(1.3),
    "-": () => view.zoomBy(1 / 1.3),
    0: () => view.showAll(),
    Escape: () => choose(-1),
    Enter: enter,
  };
  canvas.addEventListener("keydown", (event) => {
    const { key, shiftKey, ctrlKey, metaKey, altKey } = event;
    const [dx, dy] = directions[key] ?? [0, 0];
    if (ctrlKey || metaKey || altKey || !(key in directions || key in others)) return;
    event.preventDefault();
    if (key in others) others[key]();
    else if (shiftKey) view.moveBy(-40 * dx, -40 * dy);
    else choose(view.towards(dx, dy), true);
  });
}

function listenToPointers(canvas, view, choose) {
  const down = new Map(); // pointer -> place
  const placeOf = (event) => [event.offsetX, event.offsetY];
  const spread = () => {
    const [[ax, ay], [bx, by]] = [...down.values()];
    return { distance: Math.hypot(ax - bx, ay - by), middle: [(ax + bx) / 2, (ay + by) / 2] };
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    down.set(event.pointerId, placeOf(event));
    choose(view.pointAt(placeOf(event), event.pointerType === "touch" ? 28 : 16));
  });
  canvas.addEventListener("pointermove", (event) => {
    const place = placeOf(event);
    const before = down.get(event.pointerId);
    if (!before) {
      if (event.pointerType === "mouse") choose(view.pointAt(place));
    } else if (down.size === 2) {
      const { distance } = spread();
      down.set(event.pointerId, place);
      const now = spread();
      view.zoomBy(now.distance / (distance || 1), now.middle);
    } else {
      down.set(event.pointerId, place);
      view.moveBy(place[0] - before[0], place[1] - before[1]);
    }
  });
  for (const kind of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(kind, (event) => down.delete(event.pointerId));
  }
  canvas.addEventListener(
    "wheel",
    (event) => {
      // Otherwise the wheel scrolls the page, also over a map that has not been clicked.
      if (document.activeElement !== canvas && !event.ctrlKey) return;
      event.preventDefault();
      view.zoomBy(Math.exp(-event.deltaY / 400), placeOf(event));
    },
    { passive: false },
  );
}
