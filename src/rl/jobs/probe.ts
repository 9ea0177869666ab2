/** The folder of a checkpoint -> nothing, or an error if the checkpoint must not be used: the engine itself scores a text with it. */

import path from 'node:path';
import { answer } from '../../answer/index.ts';
import { LeaseScope } from '../../common/index.ts';
import { fromNative } from '../../errors.ts';
import type { RunningModel } from '../../models/index.ts';
import { KV_TRANSFER_FOLDER } from '../../models/prompt-files/index.ts';
import { checkAndAdmitChat } from '../../protocol/index.ts';
import { CHECKPOINT_FILES, diverged } from '../index.ts';

/** Samples a token and scores a prompt with an adapter. Throws `TRAINING_DIVERGED` if its numbers are not finite. */
export async function probeCheckpoint(
  model: RunningModel,
  folder: string,
  signal: AbortSignal,
  arrival: number,
): Promise<void> {
  const request = checkAndAdmitChat({
    messages: [{ role: 'user', content: 'The capital of France is' }],
    chat_template: '{{ messages[0].content }}',
    max_tokens: 1,
    temperature: 0,
    prompt_logprobs: 0,
  });
  using adapter = await model.adapters.use({
    identity: folder, // not a checkpoint id, so the adapter cache cannot confuse it with one
    path: path.join(folder, CHECKPOINT_FILES.gguf),
  });
  using leases = new LeaseScope();
  const context = {
    signal,
    leases,
    processedLogprobs: false,
    speculation: false,
    answerIndexBytes: 0,
    kvTransferFolder: KV_TRANSFER_FOLDER,
    arrival,
    cacheSalt: null,
    background: false,
  } as const;
  try {
    await answer({ model, adapter }, request, context);
  } catch (cause) {
    const { code } = fromNative(cause);
    throw code === 'BACKEND_FAILED' || code === 'NO_ALLOWED_TOKEN'
      ? diverged('it cannot answer', cause)
      : cause;
  }
}
