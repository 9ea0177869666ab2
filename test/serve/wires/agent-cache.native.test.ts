/** The second turn of coding agents on published templates: what both prompts begin with comes from the prefix cache. */
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChatCompletionRequest } from '../../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { engineSources } from '../../engine-sources.ts';
import { AGENTS } from './agent-turns.ts';

const sources = engineSources();
const folder = sources && path.join(sources, 'models', 'templates');
const TEMPLATES = ['Qwen3.5-4B', 'openai-gpt-oss-120b'];
const EMBEDDED = path.resolve(import.meta.dirname, '../../../models/onpolicy-tiny.gguf');

describe.skipIf(folder === null)('the second turn of', () => {
  let runtime: Runtime;
  beforeAll(async () => {
    const models = Object.fromEntries(
      TEMPLATES.map((name) => {
        const chatTemplate = fs.readFileSync(path.join(folder!, `${name}.jinja`), 'utf8');
        return [name, { path: EMBEDDED, chatTemplate, contextSize: 8192, threads: 1 }];
      }),
    );
    runtime = await createRuntime({ models });
  });
  afterAll(() => runtime.close());

  const pairs = Object.keys(AGENTS).flatMap((agent) => TEMPLATES.map((name) => [agent, name] as const));
  it.each(pairs)('%s with %s is cached as far as it goes on with the first', async (agent, model) => {
    const turn = (number: 1 | 2): ChatCompletionRequest => {
      const chat = JSON.parse(JSON.stringify(AGENTS[agent]!(number))) as ChatCompletionRequest;
      return { ...chat, model, temperature: 0, max_tokens: 1, max_completion_tokens: 1, cache_salt: agent };
    };
    const [before, after] = await Promise.all([1, 2].map((one) => runtime.renderPrompt(turn(one as 1 | 2))));
    let shared = 0;
    while (before!.prompt_token_ids[shared] === after!.prompt_token_ids[shared]) shared += 1;
    expect(shared).toBeGreaterThan(0.9 * before!.count); // all but the opening of the answer
    const first = await runtime.createCompletion({ ...turn(1), stream: false });
    expect(first.usage.prompt_tokens_details!.cached_tokens).toBe(0);
    const { usage } = await runtime.createCompletion({ ...turn(2), stream: false });
    expect(usage.prompt_tokens).toBe(after!.count);
    expect(usage.prompt_tokens_details!.cached_tokens).toBe(shared);
  });
});
