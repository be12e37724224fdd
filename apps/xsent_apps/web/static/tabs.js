// Tabs that work with a mouse and with arrow keys, following the ARIA practices.

import { byId } from "./dom.js";

/** Sets up the tabs; returns a function that shows one by its panel's name. A tab gets `shown` when its panel appears. */
export function openTabs() {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const show = (tab) => {
    for (const one of tabs) {
      const isShown = one === tab;
      one.setAttribute("aria-selected", String(isShown));
      one.tabIndex = isShown ? 0 : -1;
      byId(one.getAttribute("aria-controls")).hidden = !isShown;
    }
    tab.dispatchEvent(new Event("shown"));
  };
  for (const [i, tab] of tabs.entries()) {
    tab.addEventListener("click", () => show(tab));
    tab.addEventListener("keydown", ({ key }) => {
      const next = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1 }[key];
      if (next === undefined) return;
      const to = tabs[(next + tabs.length) % tabs.length];
      to.focus();
      show(to);
    });
  }
  return (name) => show(byId(`tab-${name}`));
}
