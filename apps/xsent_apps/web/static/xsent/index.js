export { Encoder } from "./encoder.js";
export { SearchIndex, cosine } from "./search.js";
