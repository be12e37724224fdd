// The thread that lays the map out and finds its groups.

import { groupsOf, namesOf } from "./groups.js";
import { cosinesOf, layOut } from "./layout.js";

onmessage = ({ data: { vectors, dim, texts, rarities } }) => {
  const cosines = cosinesOf(vectors, dim);
  const places = layOut(vectors, dim, cosines);
  const groups = groupsOf(cosines, texts.length);
  postMessage({ ...places, labels: groups.labels, names: namesOf(groups, texts, rarities) });
};
