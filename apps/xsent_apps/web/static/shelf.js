// Stores texts in the browser on this device, if the user chooses to.

const NAME = "xsent"; // of the database, which exists only while texts are kept

/** @param {IDBRequest} request */
const done = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** Runs an action on the store of the only record. @param {(store: IDBObjectStore) => IDBRequest} act */
async function withStore(act) {
  const opening = indexedDB.open(NAME);
  opening.onupgradeneeded = () => opening.result.createObjectStore("texts");
  const database = await done(opening);
  try {
    const changing = database.transaction("texts", "readwrite");
    const result = await done(act(changing.objectStore("texts")));
    // A browser without room reports it only at the commit.
    await new Promise((resolve, reject) => {
      changing.oncomplete = resolve;
      changing.onabort = () => reject(changing.error);
    });
    return result;
  } finally {
    database.close();
  }
}

/** @param {import("./texts.js").Source[]} sources */
export const keep = (sources) => withStore((store) => store.put(sources, "sources"));

/** The kept texts; undefined if there are none. @returns {Promise<import("./texts.js").Source[] | undefined>} */
export async function kept() {
  const sources = await withStore((store) => store.get("sources"));
  if (!sources) await forget();
  return sources;
}

export const forget = () => done(indexedDB.deleteDatabase(NAME));
