/** Rules of an imagined model -> a service whose answers they give, behind the real HTTP server. */
import { setTimeout as sleep } from 'node:timers/promises';
import { OnpolicyError } from '../../dist/index.js';

/** What the model is called. */
export const MODEL = 'scripted';

/**
 * A service that answers by `reply(request)`, which returns `{ text }`, `{ calls: [{ name, arguments }] }`, and with either `readMs`, the
 * time to read the prompt. A prompt of more than `contextSize` tokens overflows, as in a runtime.
 */
export function createScriptedService() {
  const seen = [];
  const service = {
    seen,
    contextSize: 1_000_000,
    reply: () => ({ text: 'ok' }),
    aborted: 0,
  };
  service.api = {
    servedModels: () => [MODEL],
    contextSize: async () => service.contextSize,
    renderPrompt: async (request) => {
      const count = tokensOf(request);
      return { prompt: '', prompt_token_ids: [], count, max_model_len: service.contextSize };
    },
    async createCompletion(request, { signal } = {}) {
      const tokens = tokensOf(request);
      const entry = { request, tokens, error: null };
      seen.push(entry);
      const check = () => {
        if (!signal?.aborted) return;
        service.aborted += 1;
        throw new OnpolicyError('ABORTED', 'the request was aborted');
      };
      try {
        requireRoom(request, tokens, service.contextSize);
      } catch (error) {
        entry.error = error;
        throw error;
      }
      const reply = service.reply(request, entry);
      entry.reply = reply;
      if (reply.error) throw reply.error;
      const id = `chatcmpl-${seen.length}`;
      const usage = usageOf(tokens, reply);
      if (!request.stream) {
        await sleep(reply.readMs ?? 0, undefined, { signal }).catch(() => {});
        check();
        return wholeOf({ id, model: request.model ?? MODEL }, reply, usage);
      }
      const controller = new AbortController();
      const stop = AbortSignal.any([controller.signal, ...(signal ? [signal] : [])]);
      return {
        async *[Symbol.asyncIterator]() {
          let place = 0; // the first chunk comes at once, the next one when the prompt is read
          for (const chunk of chunksOf({ id, model: request.model ?? MODEL }, reply, usage)) {
            const waitMs = place++ === 1 ? (reply.readMs ?? 0) : (reply.pieceMs ?? 0);
            if (waitMs > 0) await sleep(waitMs, undefined, { signal: stop }).catch(() => {});
            if (stop.aborted) {
              service.aborted += 1;
              throw new OnpolicyError('ABORTED', 'the request was aborted');
            }
            yield chunk;
          }
        },
        abort: () => controller.abort(),
      };
    },
    close: async () => {},
  };
  return service;
}

/** About four characters are a token. */
function tokensOf({ messages, tools }) {
  return Math.ceil((JSON.stringify(messages).length + JSON.stringify(tools ?? []).length) / 4);
}

function requireRoom({ max_completion_tokens: wanted }, tokens, contextSize) {
  const left = contextSize - tokens;
  if (left < 1)
    throw new OnpolicyError(
      'CONTEXT_OVERFLOW',
      `messages: the prompt has ${tokens} tokens; the context holds ${contextSize}`,
      {
        param: 'messages',
      },
    );
  if (wanted != null && wanted > left)
    throw new OnpolicyError('CONTEXT_OVERFLOW', `max_completion_tokens: ${wanted} tokens do not fit`, {
      param: 'max_completion_tokens',
    });
}

function usageOf(prompt_tokens, { text = '', calls = [] }) {
  const completion_tokens = Math.ceil((text.length + JSON.stringify(calls).length) / 4);
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}

function toolCall({ name, arguments: given }, index, id) {
  return {
    index,
    id: `call_${id}_${index}`,
    type: 'function',
    function: { name, arguments: JSON.stringify(given) },
  };
}

function wholeOf({ id, model }, { text = '', calls = [] }, usage) {
  const message = {
    role: 'assistant',
    content: text,
    refusal: null,
    annotations: null,
    audio: null,
    function_call: null,
    tool_calls: calls.map((call, i) => {
      const { index: _, ...rest } = toolCall(call, i, id);
      return rest;
    }),
    reasoning: null,
    reasoning_content: null,
  };
  const finish_reason = calls.length > 0 ? 'tool_calls' : 'stop';
  return {
    id,
    object: 'chat.completion',
    created: Math.floor(Date.now() / 1000),
    model,
    choices: [{ index: 0, message, logprobs: null, finish_reason, stop_reason: null, token_ids: null }],
    usage,
  };
}

function* chunksOf({ id, model }, { text = '', calls = [] }, usage) {
  const header = { id, object: 'chat.completion.chunk', created: Math.floor(Date.now() / 1000), model };
  const chunk = (delta, finish_reason = null) => ({
    ...header,
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    usage,
  });
  yield chunk({ role: 'assistant', content: '' });
  for (const content of text.match(/[\s\S]{1,4000}/g) ?? []) yield chunk({ content });
  for (const [i, call] of calls.entries()) yield chunk({ tool_calls: [toolCall(call, i, id)] });
  yield chunk({}, calls.length > 0 ? 'tool_calls' : 'stop');
  yield { ...header, choices: [], usage };
}
