// Opens the page: loads the model and connects the panels.

import { openDocuments } from "./documents.js";
import { byId } from "./dom.js";
import { isFirstVisit } from "./keep.js";
import { Library } from "./library.js";
import { openMap } from "./map.js";
import { Model } from "./model.js";
import { keepOffline } from "./offline.js";
import { openSearch } from "./search.js";
import { openSort } from "./sort.js";
import { Facts } from "./facts.js";
import { openTabs } from "./tabs.js";

function warn(message) {
  byId("notice").textContent = message;
  byId("notice").hidden = !message;
}

async function start() {
  const isFirst = await isFirstVisit(); // before the model is cached
  const model = new Model();
  const library = new Library(model);
  const facts = new Facts(byId("facts"), byId("summary"));
  openDocuments(library, warn, isFirst);
  const { similar } = openSearch(model, library);
  const { labels } = openSort(model, library);
  const show = openTabs();
  const like = (text) => {
    show("search");
    similar(text);
  };
  const map = openMap(model, library, like, labels);
  byId("tab-map").addEventListener("shown", map.layOut);

  model.addEventListener("progress", ({ detail: { done, total } }) => {
    byId("loading").hidden = false;
    byId("loaded").value = done / total;
    const megabytes = `${(done / 1e6).toFixed(1)} of ${(total / 1e6).toFixed(1)} MB`;
    byId("loaded-text").textContent = done < total ? megabytes : "starting…";
  });
  model.addEventListener("failed", ({ detail }) => {
    byId("loading").hidden = true;
    warn(detail.message);
  });
  model.addEventListener("ready", async ({ detail: { about } }) => {
    byId("loading").hidden = true;
    document.documentElement.dataset.ready = "yes";
    facts.model(about);
    facts.offline(await keepOffline(list.version, warn));
  });
  library.addEventListener("idle", () => facts.speed(model.milliseconds));

  const list = await readList();
  model.open(list);
}

async function readList() {
  const response = await fetch(new URL("files.json", document.baseURI));
  if (!response.ok) {
    throw new Error("The list of files of this page is missing; write the folder with `xsent web --out FOLDER`.");
  }
  return response.json();
}

start().catch((error) => warn(`The page could not start: ${error.message}`));
