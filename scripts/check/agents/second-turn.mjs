// A client, run by `run`, and the embedded model -> tokens and times of the first two turns of its real conversation.
import { fileURLToPath } from 'node:url';
import { createRuntime, serve } from '../../../dist/index.js';
import { MODEL } from './scripted-service.mjs';

/** The last request of each turn: tokens of its prompt, those in the prefix cache, milliseconds to the first token. */
export async function secondTurn(run, home) {
  const path = fileURLToPath(new URL('../../../models/onpolicy-tiny.gguf', import.meta.url));
  const rope = { type: 'linear', factor: 64 }; // its answers make no sense then, which nobody reads
  const runtime = await createRuntime({ contextSize: 65_536, models: { [MODEL]: { path, rope } } });
  const turns = [];
  const service = {
    servedModels: () => [MODEL],
    createCompletion: async (request, options) => {
      const startMs = performance.now();
      const asked = { ...request, max_completion_tokens: 8, reasoning: null, response_format: null };
      const stream_options = { include_usage: true, continuous_usage_stats: true };
      const answer = await runtime.createCompletion(
        request.stream ? { ...asked, stream_options } : asked,
        options,
      );
      if (!request.stream) return answer;
      return {
        async *[Symbol.asyncIterator]() {
          let firstMs = null;
          for await (const chunk of answer) {
            if (chunk.choices.some(({ delta }) => delta.role === undefined))
              firstMs ??= performance.now() - startMs;
            if (chunk.choices.length === 0) turns.push({ usage: chunk.usage, firstMs });
            yield chunk;
          }
        },
        abort: () => answer.abort(),
      };
    },
    close: () => runtime.close(),
  };
  const server = await serve(service, { tokens: ['secret'] });
  const found = [];
  for (const [prompt, resumes] of [
    ['What is the capital of Peru?', false],
    ['And of Egypt?', true],
  ]) {
    await run(prompt, { url: server.url, home, resumes });
    const longest = turns.splice(0).sort((a, b) => b.usage.prompt_tokens - a.usage.prompt_tokens)[0];
    found.push(longest);
  }
  await server.close();
  await runtime.close();
  return found.map(({ usage, firstMs }) => ({
    prompt: usage.prompt_tokens,
    cached: usage.prompt_tokens_details?.cached_tokens ?? 0,
    firstMs: Math.round(firstMs),
  }));
}
