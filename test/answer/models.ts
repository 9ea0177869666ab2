/** The small models of the repository, and runtimes that serve them in both cache layouts. */
import path from 'node:path';
import type { ChatCompletionRequest, RuntimeOptions } from '../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';

const root = path.resolve(import.meta.dirname, '../..');

/** Answers simple questions; 16-bit cache. */
export const EMBEDDED = path.join(root, 'models/onpolicy-tiny.gguf');
/** Random weights of 32 bits, and a context of 2,048 tokens. */
export const TINY_LLAMA = path.join(root, 'test/golden/training/tiny-llama.gguf');

/** A unified KV cache, and a non-unified one. */
export const LAYOUTS = [
  ['a unified KV cache', 4096],
  ['a non-unified KV cache', undefined],
] as const;

const open: Runtime[] = [];

/** A runtime on one thread, without drafts, whose rounding depends on how long steps take; `kvTokens` chooses the layout. Closed by {@link closeRuntimes}. */
export async function openRuntime(
  model: NonNullable<RuntimeOptions['model']>,
  kvTokens: number | undefined,
  options: RuntimeOptions = {},
): Promise<Runtime> {
  const limits = kvTokens === undefined ? {} : { kvTokens };
  const runtime = await createRuntime({
    model,
    gpu: false,
    threads: 1,
    maxSequences: 16,
    speculation: false,
    ...limits,
    ...options,
  });
  open.push(runtime);
  return runtime;
}

/** For `afterAll`. */
export async function closeRuntimes(): Promise<void> {
  for (const runtime of open.splice(0)) await runtime.close();
}

/** A request that asks one question. */
export function ask(
  question: string,
  fields: Partial<ChatCompletionRequest> = {},
): ChatCompletionRequest & { stream?: false } {
  return { messages: [{ role: 'user', content: question }], temperature: 0, ...fields, stream: false };
}
