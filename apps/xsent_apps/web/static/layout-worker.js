// The thread that lays the map out and finds its groups.

import { groupsOf, namesOf, withoutBackground } from "./groups.js";
import { Languages } from "./languages.js";
import { cosinesOf, layOut } from "./layout.js";
import { joinedKeys } from "./xsent/words.js";

onmessage = async ({ data: { vectors, dim, texts, rarities } }) => {
  const response = await fetch(new URL("function_words.json", import.meta.url));
  const languages = new Languages(await response.json());
  const of = texts.map((text) => (joinedKeys(text) ? languages.of(text) : null));
  const rest = withoutBackground(vectors, dim, cosinesOf(vectors, dim), of);
  const cosines = cosinesOf(rest, dim);
  const places = layOut(rest, dim, cosines);
  const groups = groupsOf(cosines, texts.length);
  postMessage({ ...places, labels: groups.labels, names: namesOf(groups, texts, languages, rarities) });
};
