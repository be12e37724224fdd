// Runs first, also in old browsers, hence the old style: opens the page, or reports what the browser lacks.

(function () {
  // The smallest module with a SIMD instruction: (module (func (drop (v128.const i32x4 0 0 0 0))))
  var start = [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 23, 1, 21, 0, 253, 12];
  var zeros = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
  var module = new Uint8Array(start.concat(zeros, [26, 11]));
  var lacks;
  if (typeof WebAssembly !== "object" || !WebAssembly.validate(module)) lacks = "WebAssembly with SIMD";
  else if (typeof Intl !== "object" || !Intl.Segmenter) lacks = "Intl.Segmenter";
  else if (typeof DecompressionStream !== "function") lacks = "DecompressionStream";
  else if (!Array.prototype.at) lacks = "Array.at";
  if (!lacks) {
    var script = document.createElement("script");
    script.type = "module";
    script.src = "main.js";
    document.head.appendChild(script);
    return;
  }
  var notice = document.getElementById("notice");
  notice.textContent =
    "This browser lacks " +
    lacks +
    ", which the model needs. Chrome and Edge 92, Firefox 125, Safari 16.4 and newer ones have it; if it is switched " +
    "off, for example by a lockdown mode, allow it for this page.";
  notice.hidden = false;
})();
