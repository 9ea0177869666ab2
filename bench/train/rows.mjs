// Sizes -> packed rows of arbitrary tokens, and what a row costs.

const TOKENS = 150_000;
const tokenAt = (i) => (i * 7919 + 17) % TOKENS;

/** A row of `branches` answers that share one prompt; every answer token is trained. */
export function sharedRow(promptTokens, branches, answerTokens) {
  const size = promptTokens + branches * answerTokens;
  const place = Array.from({ length: size }, (_, i) => {
    if (i < promptTokens) return { branch: 0, position: i };
    const branch = Math.floor((i - promptTokens) / answerTokens);
    return { branch: branch + 1, position: promptTokens + ((i - promptTokens) % answerTokens) };
  });
  const targets = place.flatMap(({ branch, position }, i) =>
    branch === 0 ? [] : [{ target: i, row: position === promptTokens ? promptTokens - 1 : i - 1 }],
  );
  return {
    tokens: Int32Array.from(place, (_, i) => tokenAt(i)),
    positions: Int32Array.from(place, ({ position }) => position),
    groupIds: Int32Array.from(place, ({ branch }) => branch),
    parentIds: new Int32Array(size),
    logitRows: Int32Array.from(targets, ({ row }) => row),
    targetTokens: Int32Array.from(targets, ({ target }) => tokenAt(target)),
  };
}

/** A row of one sequence, every token but the first trained. */
export function plainRow(size) {
  return {
    tokens: Int32Array.from({ length: size }, (_, i) => tokenAt(i)),
    positions: Int32Array.from({ length: size }, (_, i) => i),
    groupIds: new Int32Array(size),
    parentIds: new Int32Array(size),
    logitRows: Int32Array.from({ length: size - 1 }, (_, i) => i),
    targetTokens: Int32Array.from({ length: size - 1 }, (_, i) => tokenAt(i + 1)),
  };
}

/** Forward and backward once; milliseconds of each. */
export async function passes(trainer, row) {
  const start = performance.now();
  const { logprobs } = await trainer.forward(row);
  const middle = performance.now();
  await trainer.backward(new Float32Array(logprobs.length).fill(-1 / logprobs.length));
  return { forwardMs: middle - start, backwardMs: performance.now() - middle };
}
