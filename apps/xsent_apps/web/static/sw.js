// Caches every file of the site, so that the page opens without a network. A new list of files starts a new worker (its
// URL contains the list's version), which fetches what has changed and deletes the rest.

const CACHE = "xsent"; // the same name as in keep.js
const LIST = "files.json";

const address = (path) => new URL(path === "index.html" ? "" : path, registration.scope).href;
const key = (path, { sha256 }) => `${new URL(path, registration.scope).href}?${sha256}`;

async function install() {
  const cache = await caches.open(CACHE);
  const response = await fetch(address(LIST), { cache: "no-store" });
  const list = await response.clone().json();
  for (const [path, file] of Object.entries(list.files)) {
    if (await cache.match(key(path, file))) continue;
    const fetched = await fetch(address(path), { cache: "no-cache" });
    if (!fetched.ok) throw new Error(`${path}: ${fetched.status}`);
    await cache.put(key(path, file), fetched);
  }
  await cache.put(address(LIST), response); // last: until then the old list serves the old files
  await skipWaiting();
}

async function activate() {
  const cache = await caches.open(CACHE);
  const { files } = await (await cache.match(address(LIST))).json();
  const wanted = new Set([address(LIST), ...Object.entries(files).map(([path, file]) => key(path, file))]);
  for (const request of await cache.keys()) if (!wanted.has(request.url)) await cache.delete(request);
  await clients.claim();
}

async function answer(request) {
  const cache = await caches.open(CACHE);
  const kept = await cache.match(address(LIST));
  const path = request.url.slice(registration.scope.length).replace(/[?#].*$/, "") || "index.html";
  if (!kept) return fetch(request);
  if (request.url.endsWith("?fresh")) return fetch(request).catch(() => kept); // without a network nothing is newer
  if (path === LIST) return kept;
  const file = (await kept.json()).files[path];
  return (file && (await cache.match(key(path, file)))) ?? fetch(request);
}

addEventListener("install", (event) => event.waitUntil(install()));
addEventListener("activate", (event) => event.waitUntil(activate()));
addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method === "GET" && url.startsWith(registration.scope)) event.respondWith(answer(event.request));
});
