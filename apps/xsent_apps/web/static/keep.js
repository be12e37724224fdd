// Files of the site, cached in the browser under their URL and digest, where the service worker finds them.

const CACHE = "xsent"; // the same name as in sw.js

/** The cache, or undefined if the browser has none, as over plain HTTP or in a private window. */
async function openCache() {
  try {
    return await globalThis.caches?.open(CACHE);
  } catch {
    return undefined;
  }
}

/** Whether nothing of this site is cached: a first visit, or a browser without a cache. */
export const isFirstVisit = async () => !(await globalThis.caches?.has(CACHE).catch(() => false));

/** Asks the browser to keep the cache when the disk gets full; the answer does not matter here. */
export const askToStay = () => navigator.storage?.persist?.().catch(() => false);

/**
 * A file as bytes, from the cache or, once, from the host.
 * @param {string} path @param {string} sha256 its digest in the list of files
 * @param {(bytes: number, fetched: boolean) => void} onBytes is called as they arrive
 */
export async function fetchKept(path, sha256, onBytes) {
  const address = new URL(path, import.meta.url).href;
  const cache = await openCache();
  const kept = await cache?.match(`${address}?${sha256}`);
  const response = kept ?? (await fetch(address));
  if (!response.ok) throw new Error(`${path}: the host answered with status ${response.status}; check that the whole site was uploaded.`);
  const bytes = await readAll(response, (count) => onBytes(count, !kept));
  if (!kept && cache) {
    const { status, statusText, headers } = response;
    await cache.put(`${address}?${sha256}`, new Response(bytes, { status, statusText, headers })).catch(() => {}); // full
  }
  return bytes;
}

/** @param {Response} response @param {(bytes: number) => void} onBytes */
async function readAll(response, onBytes) {
  const chunks = [];
  const reader = response.body.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    chunks.push(next.value);
    onBytes(next.value.length);
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}
