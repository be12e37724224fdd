// A map of vectors: their two main directions first (principal components by power iteration), then neighbours are
// drawn together and others pushed apart (after LargeVis, Tang et al. 2016).

const NEIGHBOURS = 8;
const EPOCHS = 300;
const OTHERS = 5; // points that a point is pushed away from per neighbour that it is drawn to
const FURTHEST = 4; // largest step of a move

/** The same numbers every time, so that the same texts give the same map (mulberry32). */
function randomFrom(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * @param {Float32Array} vectors [n * dim], rows of length 1 @param {number} dim @param {Float32Array} cosines of them
 * @returns {{places: Float32Array, neighbours: Int32Array, each: number}} places [n * 2]; neighbours [n * each], nearest
 *   first
 */
export function layOut(vectors, dim, cosines) {
  const n = vectors.length / dim;
  const each = Math.max(0, Math.min(NEIGHBOURS, n - 1));
  const neighbours = nearestOf(cosines, n, each);
  const places = principal(vectors, dim, n);
  if (n > 4) arrange(places, neighbours, n, each);
  return { places, neighbours, each };
}

/** Places along the two directions in which the vectors differ most, spread about ten wide. */
function principal(vectors, dim, n) {
  const mean = new Float64Array(dim);
  for (let i = 0; i < n; i++) for (let d = 0; d < dim; d++) mean[d] += vectors[i * dim + d] / n;
  const centred = Float32Array.from(vectors, (value, at) => value - mean[at % dim]);
  const places = new Float32Array(2 * n);
  for (let axis = 0; axis < 2; axis++) {
    const along = mainDirection(centred, dim, n);
    const scores = projected(centred, along, dim, n);
    let largest = 1e-9;
    for (const score of scores) largest = Math.max(largest, Math.abs(score));
    for (let i = 0; i < n; i++) {
      places[2 * i + axis] = (5 * scores[i]) / largest;
      for (let d = 0; d < dim; d++) centred[i * dim + d] -= scores[i] * along[d]; // the rest is for the next axis
    }
  }
  return places;
}

function projected(rows, direction, dim, n) {
  const scores = new Float64Array(n);
  for (let i = 0; i < n; i++) for (let d = 0; d < dim; d++) scores[i] += rows[i * dim + d] * direction[d];
  return scores;
}

function mainDirection(rows, dim, n) {
  const random = randomFrom(7);
  let direction = Float64Array.from({ length: dim }, () => random() - 0.5);
  for (let turn = 0; turn < 40; turn++) {
    const scores = projected(rows, direction, dim, n);
    direction = new Float64Array(dim);
    for (let i = 0; i < n; i++) for (let d = 0; d < dim; d++) direction[d] += scores[i] * rows[i * dim + d];
    const norm = Math.hypot(...direction) || 1;
    for (let d = 0; d < dim; d++) direction[d] /= norm;
  }
  return direction;
}

/** Products of all rows with each other [n * n]. @param {Float32Array} vectors [n * dim] @param {number} dim */
export function cosinesOf(vectors, dim) {
  const n = vectors.length / dim;
  const cosines = new Float32Array(n * n);
  for (let i = 0; i < n; i++) {
    const row = vectors.subarray(i * dim, (i + 1) * dim);
    for (let j = 0; j <= i; j++) {
      let sum = 0;
      for (let d = 0, at = j * dim; d < dim; d++, at++) sum += row[d] * vectors[at];
      cosines[i * n + j] = cosines[j * n + i] = sum;
    }
  }
  return cosines;
}

/** For each row the rows nearest to it, nearest first. */
function nearestOf(cosines, n, each) {
  const found = new Int32Array(n * each);
  for (let i = 0; i < n; i++) {
    const scores = cosines.slice(i * n, (i + 1) * n);
    scores[i] = -Infinity;
    for (let k = 0; k < each; k++) {
      let best = 0;
      for (let j = 1; j < n; j++) if (scores[j] > scores[best]) best = j;
      found[i * each + k] = best;
      scores[best] = -Infinity;
    }
  }
  return found;
}

/** Moves places until neighbours are near each other. */
function arrange(places, neighbours, n, each) {
  const random = randomFrom(11);
  for (let epoch = 0; epoch < EPOCHS; epoch++) {
    const rate = 1 - epoch / EPOCHS;
    for (let i = 0; i < n; i++) {
      for (let k = 0; k < each; k++) {
        const weight = 1 / (1 + k / 2); // the nearest draw most
        pull(places, i, neighbours[i * each + k], (squared) => (-2 * weight) / (1 + squared), rate, true);
        for (let other = 0; other < OTHERS; other++) {
          const j = Math.floor(random() * n);
          if (j !== i) pull(places, i, j, (squared) => (2 * 0.3) / ((0.05 + squared) * (1 + squared)), rate, false);
        }
      }
    }
  }
}

/** Moves one place, or both, along the line between them. */
function pull(places, i, j, strength, rate, both) {
  const dx = places[2 * i] - places[2 * j];
  const dy = places[2 * i + 1] - places[2 * j + 1];
  const force = strength(dx * dx + dy * dy);
  const step = (value) => 0.1 * rate * Math.max(-FURTHEST, Math.min(FURTHEST, force * value));
  places[2 * i] += step(dx);
  places[2 * i + 1] += step(dy);
  if (!both) return;
  places[2 * j] -= step(dx);
  places[2 * j + 1] -= step(dy);
}
