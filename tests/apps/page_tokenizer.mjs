// Ids of texts by the page's tokenizer: node page_tokenizer.mjs tokenizer.js sentencepiece.model < texts.json
import { readFileSync } from "node:fs";

const [source, model] = process.argv.slice(2);
// From its text, as a browser takes it: Node asks for another name, or a package.json beside it.
const { Tokenizer } = await import(`data:text/javascript;base64,${readFileSync(source).toString("base64")}`);
try {
  const tokenizer = new Tokenizer(new Uint8Array(readFileSync(model)));
  const ids = JSON.parse(readFileSync(0, "utf8")).map((text) => tokenizer.encode(text));
  console.log(JSON.stringify({ ids, unknown: ids.map((pieces) => tokenizer.mostlyUnknown(pieces)) }));
} catch (error) {
  console.log(JSON.stringify({ error: error.message }));
}
