// The files of a model and of ONNX Runtime, in a browser or in Node.

/** The content of a file: from the disk in Node, otherwise by a request. @param {URL} url */
export async function readFile(url) {
  // Not imported: bundlers would look for it in a browser.
  if (url.protocol === "file:") return process.getBuiltinModule("node:fs/promises").readFile(url);
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: the host answered with status ${response.status}.`);
  return new Uint8Array(await response.arrayBuffer());
}

/** Unpacks gzip; bytes that the host has already unpacked are unchanged. @param {Uint8Array} bytes */
export async function unpack(bytes) {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The URL of a folder: of a path in Node, of an address in a browser. @param {string | URL} folder */
export function folderUrl(folder) {
  const { process, document, location } = globalThis;
  const named = String(folder).replace(/\/*$/, "/");
  const base = document?.baseURI ?? location?.href;
  if (base || URL.canParse(named)) return new URL(named, base);
  return process.getBuiltinModule("node:url").pathToFileURL(named); // where # and % are letters
}
