// Multinomial logistic regression on sentence vectors, by gradient descent with momentum.

const PENALTY = 0.0003; // L2, of the mean loss; few examples cannot say which is best, so it is fixed
const STEPS = 200;
const RATE = 2; // vectors have length 1, so the loss bends by less than 1 and steps below 2 are safe with any momentum
const MOMENTUM = 0.9;

/** @typedef {{rows: Float64Array[]}} Head for each class its weights and, last, its bias */

/**
 * Fits a head; every class counts the same, however many examples it has.
 * @param {Float32Array[]} vectors @param {number[]} labels a class each, from 0 @param {number} classes
 * @returns {Head}
 */
export function fit(vectors, labels, classes) {
  const dim = vectors[0].length;
  const empty = () => Array.from({ length: classes }, () => new Float64Array(dim + 1));
  const [rows, speeds] = [empty(), empty()];
  const sizes = labels.reduce((counts, label) => ((counts[label] += 1), counts), new Float64Array(classes));
  for (let step = 0; step < STEPS; step++) {
    const errors = vectors.map((vector, i) => {
      const weight = 1 / (classes * sizes[labels[i]]);
      return predict({ rows }, vector).map((share, k) => weight * (share - (k === labels[i] ? 1 : 0)));
    });
    for (let k = 0; k < classes; k++) {
      const gradient = rows[k].map((value, d) => (d < dim ? PENALTY * value : 0));
      for (let i = 0; i < vectors.length; i++) {
        for (let d = 0; d < dim; d++) gradient[d] += errors[i][k] * vectors[i][d];
        gradient[dim] += errors[i][k];
      }
      for (let d = 0; d <= dim; d++) {
        speeds[k][d] = MOMENTUM * speeds[k][d] - RATE * gradient[d];
        rows[k][d] += speeds[k][d];
      }
    }
  }
  return { rows };
}

/** Probabilities of all classes. @param {Head} head @param {Float32Array} vector @returns {number[]} */
export function predict({ rows }, vector) {
  const dim = vector.length;
  const scores = rows.map((row) => {
    let sum = row[dim];
    for (let d = 0; d < dim; d++) sum += row[d] * vector[d];
    return sum;
  });
  const highest = Math.max(...scores);
  const shares = scores.map((score) => Math.exp(score - highest));
  const total = shares.reduce((sum, share) => sum + share, 0);
  return shares.map((share) => share / total);
}
