// A model file's shapes -> random initial weights.

/** Deviation of the token embeddings. They are the head too, so logits start near 0. */
const EMBEDDING_DEVIATION = 0.05;

/** Sets every weight of a trainer: norms to one, matrices to normal numbers. `random`: from createRandom. */
export async function setRandomWeights(trainer, random) {
  const layers = trainer.parameters.filter(({ name }) => name.endsWith('attn_q.weight')).length;
  const weights = {};
  for (const { name, in: size, out } of trainer.parameters) {
    const values = new Float32Array(size * out);
    if (name.includes('norm')) values.fill(1);
    else if (!name.endsWith('.bias')) {
      const deviation = deviationOf(name, size, layers);
      for (let i = 0; i < values.length; i++) values[i] = deviation * random.normal();
    }
    weights[name] = values;
  }
  await trainer.setWeights(weights);
}

/** Matrices that add to the residual stream, two a layer, start smaller. */
function deviationOf(name, size, layers) {
  if (name.startsWith('token_embd')) return EMBEDDING_DEVIATION;
  const addsToStream = name.includes('attn_output') || name.includes('ffn_down');
  return (addsToStream ? 1 / Math.sqrt(2 * layers) : 1) / Math.sqrt(size);
}
