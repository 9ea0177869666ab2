/** A model and a source of drafts -> the tokens of its answers to some requests, and how often the drafts were right. */
import fs from 'node:fs';
import { vi } from 'vitest';
import { readHeader } from '../../../src/engine/gguf/index.ts';
import { StepCosts } from '../../../src/engine/step-costs.ts';
import type { ChatCompletionRequest, Speculation } from '../../../src/protocol/index.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';

/** Drafts are checked whatever a busy machine does: nothing is measured. */
vi.spyOn(StepCosts.prototype, 'record').mockImplementation(() => {});

/** A request for 40 tokens. */
export const asked = (text: string, fields: Partial<ChatCompletionRequest> = {}) => ({
  messages: [{ role: 'user' as const, content: text }],
  max_tokens: 40,
  ignore_eos: true,
  return_token_ids: true,
  seed: 5,
  ...fields,
  stream: false as const,
});
const schema = {
  type: 'object',
  properties: { a: { type: 'array', items: { type: 'integer' } } },
  required: ['a'],
};
const REQUESTS = [
  asked('one two', { temperature: 0 }),
  asked('three four', { temperature: 0.9 }),
  asked('five six', { temperature: 1, n: 2, logprobs: true, top_logprobs: 2 }),
  asked('seven', { temperature: 1, structured_outputs: { json: schema }, ignore_eos: false }),
];

/** The tokens of all answers, asked at once; and how often drafts were right. */
export async function answers(model: string, speculation: Speculation) {
  const runtime = await createRuntime({ model, speculation, gpu: false, threads: 1, contextSize: 256 });
  try {
    const all = await Promise.all(REQUESTS.map((request) => runtime.createCompletion(request)));
    const later = await runtime.createCompletion(REQUESTS[1]!); // behind a cached prompt
    const { draftedTokens, acceptedTokens } = runtime.stats();
    const tokens = [...all, later].flatMap(({ choices }) => choices.map(({ token_ids }) => token_ids));
    return { tokens, draftedTokens, acceptedTokens, loaded: (await runtime.loaded()).length };
  } finally {
    await runtime.close();
  }
}

/** Copies a model, with changes to tensors of 32 bits: (name, shape, values) -> whether they are written. */
export async function rewritten(
  file: string,
  to: string,
  edit: (tensor: string, shape: readonly number[], values: Float32Array) => boolean,
): Promise<string> {
  fs.copyFileSync(file, to);
  const handle = fs.openSync(to, 'r+');
  for (const [tensor, { shape, offset, bytes }] of (await readHeader(to)).tensors) {
    const values = new Float32Array(bytes / 4);
    fs.readSync(handle, values, 0, bytes, offset);
    if (edit(tensor, shape, values)) fs.writeSync(handle, values, 0, bytes, offset);
  }
  fs.closeSync(handle);
  return to;
}
