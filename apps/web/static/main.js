// Opens the page: says what the browser lacks, loads the model, and wires the panels.

import { openDocuments } from "./documents.js";
import { byId } from "./dom.js";
import { Library } from "./library.js";
import { openMap } from "./map.js";
import { Model } from "./model.js";
import { keepOffline } from "./offline.js";
import { openSearch } from "./search.js";
import { openSort } from "./sort.js";
import { Facts } from "./facts.js";
import { openTabs } from "./tabs.js";

// The smallest module with a SIMD instruction: (module (func (drop (v128.const i32x4 0 0 0 0))))
const SIMD = [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 23, 1, 21, 0, 253, 12, ...Array(16).fill(0), 26, 11];

function warn(message) {
  byId("notice").textContent = message;
  byId("notice").hidden = !message;
}

/** What the browser lacks, if anything. */
function missing() {
  if (typeof WebAssembly !== "object" || !WebAssembly.validate(Uint8Array.from(SIMD))) return "WebAssembly with SIMD";
  if (typeof DecompressionStream !== "function") return "DecompressionStream";
  return undefined;
}

async function start() {
  const lack = missing();
  if (lack) {
    warn(
      `This browser lacks ${lack}, which the model needs. Chrome 91, Edge 91, Firefox 125, Safari 16.4 and newer ones ` +
        "have it; where it is switched off, say by a lockdown mode, allow it for this page.",
    );
    return;
  }
  const model = new Model();
  const library = new Library(model);
  const facts = new Facts(byId("facts"));
  openDocuments(library, warn);
  const { similar } = openSearch(model, library);
  openSort(model, library);
  const show = openTabs();
  const map = openMap(library, (text) => {
    show("search");
    similar(text);
  });
  byId("tab-map").addEventListener("shown", map.layOut);

  model.addEventListener("progress", ({ detail: { done, total } }) => {
    byId("loading").hidden = false;
    byId("loaded").value = done / total;
    byId("loaded-text").textContent = `${(done / 1e6).toFixed(1)} of ${(total / 1e6).toFixed(1)} MB`;
  });
  model.addEventListener("failed", ({ detail }) => {
    byId("loading").hidden = true;
    warn(detail.message);
  });
  model.addEventListener("ready", async ({ detail: { about } }) => {
    byId("loading").hidden = true;
    document.documentElement.dataset.ready = "yes";
    facts.model(about);
    facts.offline(await keepOffline(list.version, (message) => warn(message)));
  });
  library.addEventListener("idle", () => facts.speed(model.milliseconds));

  const list = await readList();
  model.open(list);
}

async function readList() {
  const response = await fetch(new URL("files.json", document.baseURI));
  if (!response.ok) {
    throw new Error("This page was put here without its list of files: write the folder with `xsent web --out FOLDER`.");
  }
  return response.json();
}

start().catch((error) => warn(`The page could not start: ${error.message}`));
