// Rules of an imagined model -> a service that answers by them, behind the real HTTP server.
import { setTimeout as sleep } from 'node:timers/promises';
import { contextOverflow } from '../../../dist/errors.js';
import { OnpolicyError } from '../../../dist/index.js';

/** Name of the model. */
export const MODEL = 'scripted';

/**
 * A service that answers by `reply(request)`, which returns `{ text }`, `{ calls: [{ name, arguments }] }` or `{ error }`, with `readMs`
 * where its prompt takes time to read. A prompt of more than `contextSize` tokens overflows, unless `isExempt(request)`.
 */
export function createScriptedService() {
  const service = { running: 0, aborted: 0, seen: [] };
  service.reset = () =>
    Object.assign(service, {
      contextSize: 1_000_000,
      isExempt: () => false,
      reply: () => ({ text: 'Yes.' }),
      seen: [],
    });
  service.reset();
  service.api = {
    servedModels: () => [MODEL],
    contextSize: async () => service.contextSize,
    renderPrompt: async (request) => ({
      prompt: '',
      prompt_token_ids: [],
      count: tokensOf(request),
      max_model_len: service.contextSize,
    }),
    createCompletion: async (request, { signal } = {}) => {
      const entry = { request, tokens: tokensOf(request), reply: null, error: null };
      service.seen.push(entry);
      try {
        if (!service.isExempt(request)) requireRoom(request, entry.tokens, service.contextSize);
        entry.reply = service.reply(request);
        if (entry.reply.error) throw entry.reply.error;
      } catch (error) {
        entry.error = error;
        throw error;
      }
      const header = { id: `chatcmpl-${service.seen.length}`, model: request.model ?? MODEL };
      const controller = new AbortController();
      const stop = AbortSignal.any([controller.signal, ...(signal ? [signal] : [])]);
      const chunks = readChunks(service, chunksOf(header, entry), entry.reply, stop);
      if (request.stream) return { [Symbol.asyncIterator]: () => chunks, abort: () => controller.abort() };
      for await (const _ of chunks);
      return wholeOf(header, entry);
    },
    close: async () => {},
  };
  return service;
}

/** The chunks in their time: the first one at once, the next one when the prompt is read. */
async function* readChunks(service, chunks, { readMs = 0 }, signal) {
  service.running += 1;
  try {
    for (const [i, chunk] of chunks.entries()) {
      if (i === 1 && readMs > 0) await sleep(readMs, undefined, { signal }).catch(() => {});
      if (signal.aborted) {
        service.aborted += 1;
        throw new OnpolicyError('ABORTED', 'the request was aborted');
      }
      yield chunk;
    }
  } finally {
    service.running -= 1;
  }
}

/** About four characters are a token. */
function tokensOf({ messages, tools }) {
  return Math.ceil((JSON.stringify(messages).length + JSON.stringify(tools ?? []).length) / 4);
}

function requireRoom({ max_completion_tokens: wanted }, prompt_tokens, max_model_len) {
  const use = { prompt_tokens, max_model_len };
  if (prompt_tokens >= max_model_len) throw contextOverflow('messages', 'the prompt is too long', use);
  if (wanted != null && prompt_tokens + wanted > max_model_len)
    throw contextOverflow('max_completion_tokens', 'it does not fit', {
      ...use,
      max_completion_tokens: wanted,
    });
}

function usageOf({ tokens: prompt_tokens, reply: { text = '', calls = [] } }) {
  const completion_tokens = Math.ceil((text.length + JSON.stringify(calls).length) / 4);
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}

function toCall({ name, arguments: given }, index, id) {
  return {
    id: `call_${id}_${index}`,
    type: 'function',
    function: { name, arguments: JSON.stringify(given) },
  };
}

function wholeOf({ id, model }, entry) {
  const { text = '', calls = [] } = entry.reply;
  const message = {
    role: 'assistant',
    content: text,
    refusal: null,
    reasoning: null,
    tool_calls: calls.map((call, i) => toCall(call, i, id)),
  };
  const finish_reason = calls.length > 0 ? 'tool_calls' : 'stop';
  return {
    id,
    object: 'chat.completion',
    created: Math.floor(Date.now() / 1000),
    model,
    choices: [{ index: 0, message, logprobs: null, finish_reason, stop_reason: null }],
    usage: usageOf(entry),
  };
}

function chunksOf({ id, model }, entry) {
  const { text = '', calls = [] } = entry.reply;
  const usage = usageOf(entry);
  const header = {
    id,
    object: 'chat.completion.chunk',
    created: Math.floor(Date.now() / 1000),
    model,
    usage,
  };
  const chunk = (delta, finish_reason = null) => ({
    ...header,
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
  });
  return [
    chunk({ role: 'assistant', content: '' }),
    ...(text.match(/[\s\S]{1,4000}/g) ?? []).map((content) => chunk({ content })),
    ...calls.map((call, index) => chunk({ tool_calls: [{ index, ...toCall(call, index, id) }] })),
    chunk({}, calls.length > 0 ? 'tool_calls' : 'stop'),
    { ...header, choices: [] },
  ];
}
