// A trainer and rows -> trained weights: warm-up, then cosine decay of the rate.

/** Warm-up steps. */
const WARM_UP = 100;
/** Final rate as a share of the highest. */
const LAST_SHARE = 0.02;

/** The rate after a share `progress` (0 to 1) of the run. */
export function learningRate(highest, step, progress) {
  const warm = Math.min(1, (step + 1) / WARM_UP);
  const cosine = (1 + Math.cos(Math.PI * Math.min(1, progress))) / 2;
  return highest * warm * (LAST_SHARE + (1 - LAST_SHARE) * cosine);
}

/**
 * Trains until `steps` steps are done or, when `minutes` is given, until that time is over. `rows`: an async iterator of
 * { row, targetWeights }. `onStep({ step, loss, tokens, elapsedMs })`: loss is the mean negative log-probability.
 */
export async function trainModel(trainer, rows, options, onStep = async () => {}) {
  const { steps, minutes, rowsPerStep, highestRate } = options;
  const start = performance.now();
  let tokens = 0;
  for (let step = 0; ; step++) {
    const elapsedMs = performance.now() - start;
    const progress = minutes ? elapsedMs / 60_000 / minutes : step / steps;
    if (progress >= 1) return;
    const batch = [];
    for (let i = 0; i < rowsPerStep; i++) batch.push((await rows.next()).value);
    const total = batch.reduce((sum, { targetWeights }) => sum + sumOf(targetWeights), 0);
    let loss = 0;
    for (const { row, targetWeights } of batch) {
      const shares = targetWeights.map((weight) => weight / total);
      const logprobs = await trainer.addGradients(row, shares);
      loss -= logprobs.reduce((sum, logprob, i) => sum + logprob * shares[i], 0);
      tokens += row.tokens.length;
    }
    await trainer.step({
      learningRate: learningRate(highestRate, step, progress),
      beta2: 0.98,
      weightDecay: 0.05,
      maxGradNorm: 1,
    });
    await onStep({ step: step + 1, loss, tokens, elapsedMs, progress });
  }
}

const sumOf = (values) => values.reduce((sum, value) => sum + value, 0);
