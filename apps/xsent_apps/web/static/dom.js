// Small helpers for the page's elements.

/** @param {string} id */
export const byId = (id) => document.getElementById(id);

/**
 * A new element; text never becomes markup.
 * @param {string} tag @param {Record<string, unknown>} properties @param {...(Node | string)} children
 */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** A count with its noun. @param {number} count @param {string} noun */
export const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

/** A text, truncated if it is too long. @param {string} text @param {number} most characters */
export const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1).trimEnd()}…` : text);

/** Debounces: calls once there have been no calls for a while. @param {(...values: any[]) => void} act @param {number} milliseconds */
export function later(act, milliseconds) {
  let timer;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(act, milliseconds, ...values);
  };
}

/** A list of the first items, and a button that shows the rest. @template T @param {T[]} items @param {(item: T) => Node} render */
export function growingList(items, render, first) {
  const list = make("ol", { className: "results" }, ...items.slice(0, first).map(render));
  if (items.length <= first) return [list];
  const grow = () => {
    const rest = items.slice(first).map(render);
    list.append(...rest);
    button.remove();
    rest[0].tabIndex = -1; // so that keyboard users continue there
    rest[0].focus();
  };
  const button = make("button", { type: "button", className: "more", onclick: grow }, `Show ${items.length - first} more`);
  return [list, button];
}

/** The shape for a colour, so that colour and shape repeat only after 27; no colour, -1, has the last shape. */
export const shapeOf = (colour) => (colour < 0 ? 2 : (colour + Math.floor(colour / 9)) % 3);

/** A dot in a colour. @param {number} colour */
export const dot = (colour) =>
  make("span", { className: `dot c${colour < 0 ? "none" : colour % 9} s${shapeOf(colour)}`, ariaHidden: "true" });

/** A bar for a share between 0 and 1. */
export function bar(share) {
  return make("meter", { min: 0, max: 1, value: Math.max(0, share), ariaHidden: "true" });
}

/** Downloads a file. @param {string} name @param {Blob} blob */
export function save(name, blob) {
  const href = URL.createObjectURL(blob);
  make("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
