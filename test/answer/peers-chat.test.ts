/** The cases of llama.cpp's test-chat: template and text of a model -> its message, whole and in pieces. */
import { describe, expect, it } from 'vitest';
import { MessageOut } from '../../src/answer/message-out.ts';
import type { ValidChatRequest } from '../../src/protocol/index.ts';
import { PLAIN_TEXT, planMessage, planReasoning } from '../../src/template/chat-format/index.ts';
import { compileChatTemplate } from '../../src/template/index.ts';
import { detectReasoning, openReasoning } from '../../src/template/reasoning/index.ts';
import { detectToolFormat } from '../../src/template/tool-calls/index.ts';
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

function promptOf(row: PeerRow, source: string, tools: readonly unknown[]): string {
  const messages = row.continue > 0 ? row.messages.slice(0, -1) : row.messages;
  const kwargs = { enable_thinking: row.enable_thinking, thinking: row.enable_thinking };
  const input = { messages, tools: tools.length > 0 ? tools : null, addGenerationPrompt: true, kwargs };
  try {
    return compileChatTemplate(source).render(
      { ...input, bosToken: '<s>', eosToken: '</s>' },
      { parseToolArguments: true, growsLists: true },
    );
  } catch (error) {
    if (failsToRender(row)) return '';
    throw error;
  }
}

function read(row: PeerRow, pieces: readonly string[]) {
  const source = templateOf(row);
  const tools = toolsOf(row);
  const prompt = promptOf(row, source, tools);
  const reasoning = detectReasoning(source, prompt.slice(-256));
  const continued = row.continue > 0 ? row.messages.at(-1)! : { content: '', reasoning: '' };
  const request = {
    tools,
    tool_choice: 'auto',
    allowed_tools: null,
    custom_tools: new Map(),
    parallel_tool_calls: true,
    uses_functions: false,
    include_reasoning: true,
    continue_final_message: row.continue > 0,
    messages: row.messages.map((message) => ({
      ...message,
      content: message.content === '' ? [] : [{ type: 'text', text: message.content }],
    })),
  } as unknown as ValidChatRequest;
  const end = row.continue > 0 && reasoning ? openReasoning(reasoning, prompt) + continued.reasoning : prompt;
  const format = { ...PLAIN_TEXT, tools: detectToolFormat(source), reasoning };
  const plan = planMessage(format, request, planReasoning(format, request, end.slice(-256)));
  const message = new MessageOut(plan);
  for (const piece of pieces) message.push(piece);
  message.finish();
  const calls = message.toolCalls.map((call) => {
    if (call.type !== 'function') throw new Error('expected a function');
    return { name: call.function.name, arguments: normalJson(call.function.arguments) };
  });
  return {
    content: (continued.content + message.content).trim(),
    reasoning: (continued.reasoning + message.reasoning).trim(),
    calls,
  };
}

describe.skipIf(!hasPeerData)("llama.cpp's chat cases", () => {
  it.each(PEER_ROWS.map((row) => [row.title, row] as const))('%s', (_, row) => {
    for (const pieces of [[row.input], [...row.input], row.input.match(/[\s\S]{1,3}/g) ?? []])
      expect(read(row, pieces)).toEqual(wantedOf(row));
  });

  it('are many', () => expect(PEER_ROWS.length).toBeGreaterThan(200));
});
