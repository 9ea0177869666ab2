/** The cases of llama.cpp's test-chat through the public API: the embedded model is made to write each text, whole, streamed, and read back from its tokens. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChatCompletion, ChatCompletionRequest, ResponseToolCall } from '../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { chunksOf, forced } from './fields/model.ts';
import { EMBEDDED } from './models.ts';
import {
  failsToRender,
  hasPeerData,
  normalJson,
  PEER_ROWS,
  type PeerRow,
  templateOf,
  toolsOf,
  wantedOf,
} from './peer-rows.ts';

/** Every how many rows one is asked for: `ONPOLICY_PEERS=1` asks for all, which takes half a minute. */
const STEP = Number(process.env['ONPOLICY_PEERS'] ?? 4);
const CONTEXT = 16_384;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-peers-'));
let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({
    model: withLongContext(),
    maxSequences: 1,
    contextSize: CONTEXT,
    gpu: false,
  });
});
afterAll(async () => {
  await runtime.close();
  fs.rmSync(folder, { recursive: true });
});

/** A copy of the embedded model whose header says that its context is longer: prompts of templates with tools are long. */
function withLongContext(): string {
  const bytes = fs.readFileSync(EMBEDDED);
  const name = 'llama.context_length';
  bytes.writeUInt32LE(CONTEXT, bytes.indexOf(name) + name.length + 4); // behind the type
  const file = path.join(folder, 'long.gguf');
  fs.writeFileSync(file, bytes);
  return file;
}

function requestOf(row: PeerRow): Partial<ChatCompletionRequest> {
  const tools = toolsOf(row);
  return {
    chat_template: templateOf(row),
    chat_template_kwargs: { enable_thinking: row.enable_thinking, thinking: row.enable_thinking },
    ...(tools.length > 0 ? { tools } : {}),
    ...(row.continue > 0 ? { continue_final_message: true, add_generation_prompt: false } : {}),
    messages: row.messages.map(({ role, content, reasoning }) => ({
      role,
      content,
      ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    })) as ChatCompletionRequest['messages'],
  };
}

type Answer = { content: string; reasoning: string; calls: { name: string; arguments: string }[] };

/** The message that the caller has with what the request continued. */
function joined(row: PeerRow, { content, reasoning, calls }: Answer): Answer {
  const before = row.continue > 0 ? row.messages.at(-1)! : { content: '', reasoning: '' };
  return {
    content: (before.content + content).trim(),
    reasoning: (before.reasoning + reasoning).trim(),
    calls: calls.map((call) => ({ name: call.name, arguments: normalJson(call.arguments) })),
  };
}

/** Reads the answer from its tokens, too: it must be the same. */
async function whole(request: ChatCompletionRequest): Promise<Answer> {
  const asked = { ...request, return_token_ids: true };
  const direct = await runtime.createCompletion({ ...asked, stream: false });
  const choices = direct.choices.map(({ token_ids }) => ({ token_ids: token_ids! }));
  const parsed = await runtime.parseAnswer({ generate_response: { choices }, chat_request: asked });
  expect(withoutIds(parsed)).toEqual(withoutIds(direct));
  const { message } = direct.choices[0]!;
  const functionOf = (call: ResponseToolCall) => {
    if (call.type !== 'function') throw new Error('expected a function');
    return call.function;
  };
  return {
    content: message.content ?? '',
    reasoning: message.reasoning ?? '',
    calls: (message.tool_calls ?? []).map(functionOf),
  };
}

/** The choices of an answer without the ids of calls, which are drawn. */
function withoutIds({ choices }: ChatCompletion): unknown {
  return choices.map(({ message, ...choice }) => ({
    ...choice,
    message: { ...message, tool_calls: message.tool_calls.map(({ id: _, ...call }) => call) },
  }));
}

async function streamed(request: ChatCompletionRequest): Promise<Answer> {
  const answer: Answer = { content: '', reasoning: '', calls: [] };
  for (const { choices } of await chunksOf(runtime, request)) {
    const delta = choices[0]?.delta;
    answer.content += delta?.content ?? '';
    answer.reasoning += delta?.reasoning ?? '';
    for (const { index, function: part } of delta?.tool_calls ?? []) {
      const call = answer.calls[index] ?? { name: '', arguments: '' };
      answer.calls[index] = call;
      call.name += part?.name ?? '';
      call.arguments += part?.arguments ?? '';
    }
  }
  return answer;
}

describe.skipIf(!hasPeerData)("llama.cpp's chat cases through createCompletion", () => {
  it.each(PEER_ROWS.filter((_, at) => at % STEP === 0).map((row) => [row.title, row] as const))(
    '%s',
    async (_, row) => {
      const request = await forced(runtime, row.input, requestOf(row));
      if (failsToRender(row))
        return await expect(whole(request)).rejects.toMatchObject({ code: 'TEMPLATE_FAILED' });
      expect(joined(row, await whole(request))).toEqual(wantedOf(row));
      expect(joined(row, await streamed(request))).toEqual(wantedOf(row));
    },
  );
});
