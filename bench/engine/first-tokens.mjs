// A runtime and a request -> milliseconds until every choice has its first token.

/** Milliseconds from the call until all `n` choices of `content` have a token. */
export async function timeToFirstTokens(runtime, content, n = 1) {
  const startMs = performance.now();
  const stream = await runtime.createCompletion({
    messages: [{ role: 'user', content }],
    n,
    max_completion_tokens: 2,
    ignore_eos: true,
    temperature: 0.8,
    seed: 1,
    logprobs: true, // a token that ends in the middle of a character has no text yet, but an entry here
    stream: true,
  });
  const seen = new Set();
  let lastMs = 0;
  for await (const chunk of stream)
    for (const { index, logprobs } of chunk.choices)
      if (!seen.has(index) && logprobs?.content?.length > 0) {
        seen.add(index);
        lastMs = performance.now() - startMs;
      }
  if (seen.size !== n) throw new Error(`${seen.size} of ${n} choices gave a token`);
  return lastMs;
}
