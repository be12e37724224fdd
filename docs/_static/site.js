// Names and roles that the theme leaves out, and keyboard access to what scrolls.

function nameLandmarks() {
  document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "All pages");
  document.querySelector(".toc-drawer")?.setAttribute("aria-label", "This page");
  for (const caption of document.querySelectorAll('.caption[role="heading"]')) caption.ariaLevel = "2";
}

function reachScrollable() {
  for (const part of document.querySelectorAll("pre, .table-wrapper")) {
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
    else part.removeAttribute("tabindex");
  }
}

addEventListener("DOMContentLoaded", nameLandmarks);
addEventListener("load", reachScrollable);
addEventListener("resize", reachScrollable);
