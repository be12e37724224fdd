// Multinomial logistic regression on sentence vectors: few examples, so the penalty is strong and fixed.

const PENALTY = 0.02; // L2, of the mean loss
const STEPS = 300;
const RATE = 4; // vectors have length 1, so the loss bends by no more than a half
const MOMENTUM = 0.9;

/** @typedef {{weights: Float64Array[], biases: Float64Array}} Head */

/**
 * Fits a head by gradient descent; every class counts the same, however many examples it has.
 * @param {Float32Array[]} vectors @param {number[]} labels a class each, from 0 @param {number} classes
 * @returns {Head}
 */
export function fit(vectors, labels, classes) {
  const dim = vectors[0].length;
  const weights = Array.from({ length: classes }, () => new Float64Array(dim));
  const biases = new Float64Array(classes);
  const speed = weights.map(() => new Float64Array(dim + 1));
  const sizes = labels.reduce((counts, label) => ((counts[label] += 1), counts), new Float64Array(classes));
  for (let step = 0; step < STEPS; step++) {
    const gradient = weights.map((row) => Float64Array.from([...row, 0], (value) => PENALTY * value));
    vectors.forEach((vector, i) => {
      const share = 1 / (classes * sizes[labels[i]]);
      predict({ weights, biases }, vector).forEach((probability, k) => {
        const error = share * (probability - (k === labels[i] ? 1 : 0));
        for (let d = 0; d < dim; d++) gradient[k][d] += error * vector[d];
        gradient[k][dim] += error;
      });
    });
    for (let k = 0; k < classes; k++) {
      for (let d = 0; d <= dim; d++) {
        speed[k][d] = MOMENTUM * speed[k][d] - (1 - MOMENTUM) * RATE * gradient[k][d];
        if (d < dim) weights[k][d] += speed[k][d];
        else biases[k] += speed[k][d];
      }
    }
  }
  return { weights, biases };
}

/** Probabilities of all classes. @param {Head} head @param {Float32Array} vector @returns {number[]} */
export function predict({ weights, biases }, vector) {
  const scores = weights.map((row, k) => row.reduce((sum, weight, d) => sum + weight * vector[d], biases[k]));
  const highest = Math.max(...scores);
  const shares = scores.map((score) => Math.exp(score - highest));
  const total = shares.reduce((sum, share) => sum + share, 0);
  return shares.map((share) => share / total);
}
