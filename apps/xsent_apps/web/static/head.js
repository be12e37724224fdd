// A zero-shot head, as in `LinearClassifier.from_descriptions`: a text gets the label with the nearest centre, or none if
// it is near no centre. xsent/classification/limit.py explains the limit.

import { cosine, unit } from "./xsent/search.js";

const WORTH = 4; // a description weighs as much as this many examples
const FAR = 0.05; // share of the examples that the limit may reject
const COMMON = 0.5; // share of the mean cosine to all centres that is subtracted
const SAME = 0.7; // two examples with at least this cosine mean the same
const TINY = 1e-3;
const LEAST = 0.05; // with too few examples: no label applies below this product with the nearest centre
const TEMPERATURE = 1 / 16; // of the cosines, with too few examples

/** @typedef {{centres: Float32Array[], widths: number[], least: number, temperature: number}} Head */

/** @param {{description?: Float32Array, examples: Float32Array[]}[]} labels @returns {Head} */
export function headOf(labels) {
  const sums = labels.map(({ description, examples }) => sumOf(description, examples));
  const centres = sums.map(unit);
  const own = labels.flatMap(({ examples }, k) => examples.map(() => k));
  // Fewer examples cannot show what 95% of texts are like: a single one would make nearly all others unknown.
  if (own.length + 1 < 1 / FAR) {
    return { centres, widths: centres.map(() => 1), least: LEAST, temperature: TEMPERATURE };
  }
  const examples = labels.flatMap((label) => label.examples);
  const heldOut = examples.map((vector, i) => {
    const without = centreWithout(sums[own[i]], labels[own[i]].examples, vector);
    return centres.map((centre, k) => (k !== own[i] ? cosine(vector, centre) : without ? cosine(vector, without) : SAME));
  });
  const widths = widthsOf(heldOut.map(apart), own, centres.length);
  const nearest = heldOut.map((cosines) => Math.max(...apart(cosines).map((value, k) => value / widths[k])));
  const least = Math.min(Math.max(quantile(nearest, FAR), -1), 1);
  return { centres, widths, least, temperature: fitTemperature(heldOut, own) };
}

/** The centre of a label without a text and those that mean the same; undefined if nothing is left. */
function centreWithout(sum, examples, vector) {
  const rest = Float64Array.from(sum);
  for (const other of examples) {
    if (cosine(vector, other) >= SAME) for (let d = 0; d < rest.length; d++) rest[d] -= other[d];
  }
  return Math.hypot(...rest) > TINY ? unit(Float32Array.from(rest)) : undefined;
}

/** Cosines minus a part of their mean. */
function apart(cosines) {
  const mean = cosines.reduce((sum, value) => sum + value, 0) / cosines.length;
  return cosines.map((value) => value - COMMON * mean);
}

/** How near to each label its own texts are, relative to all texts. */
function widthsOf(products, own, size) {
  const usual = Math.max(products.reduce((sum, row, i) => sum + row[own[i]], 0) / own.length, TINY);
  return Array.from({ length: size }, (_, k) => {
    const rows = products.filter((_, i) => own[i] === k);
    const sum = rows.reduce((total, row) => total + row[k], 0);
    return Math.max((sum + WORTH * usual) / (rows.length + WORTH) / usual, 1 / WORTH);
  });
}

/** The number of the label, -1 for none, and the highest probability. @param {Head} head @param {Float32Array} vector */
export function answer({ centres, widths, least, temperature }, vector) {
  const cosines = centres.map((centre) => cosine(vector, centre));
  const shares = softmax(cosines, 1 / temperature);
  const fits = Math.max(...apart(cosines).map((value, k) => value / widths[k])) >= least;
  return { label: fits ? cosines.indexOf(Math.max(...cosines)) : -1, share: Math.max(...shares) };
}

function sumOf(description, examples) {
  const sum = description ? description.map((value) => WORTH * value) : new Float32Array(examples[0].length);
  for (const vector of examples) for (let d = 0; d < sum.length; d++) sum[d] += vector[d];
  return sum;
}

function softmax(scores, scale) {
  const highest = Math.max(...scores);
  const shares = scores.map((score) => Math.exp(scale * (score - highest)));
  const total = shares.reduce((sum, share) => sum + share, 0);
  return shares.map((share) => share / total);
}

function quantile(values, share) {
  const sorted = values.sort((a, b) => a - b);
  const place = share * (sorted.length - 1);
  const [below, above] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  return below + (place % 1) * (above - below);
}

/** The temperature of lowest log loss, as in `fit_temperature` of xsent/classification/logistic.py. */
function fitTemperature(scores, own) {
  const doubt = 1 / (own.length + 2); // probability that a right answer is not one
  const mean = (weights, row) => row.reduce((sum, score, k) => sum + weights[k] * score, 0);
  const gold = scores.map((row, i) => (1 - doubt) * row[own[i]] + doubt * mean(row.map(() => 1 / row.length), row));
  let [low, high] = [-5, 5]; // of log(1 / temperature)
  while (high - low > 1e-6) {
    const middle = (low + high) / 2;
    const slope = scores.reduce((sum, row, i) => sum + mean(softmax(row, Math.exp(middle)), row) - gold[i], 0);
    [low, high] = slope > 0 ? [low, middle] : [middle, high];
  }
  return Math.exp(-low);
}
