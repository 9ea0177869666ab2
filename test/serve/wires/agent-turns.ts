/** Two turns of coding agents, as each says them over its API -> chat completion requests. */
import { toChat as messagesToChat } from '../../../src/serve/wires/messages/to-chat.ts';
import { toChat as responsesToChat } from '../../../src/serve/wires/responses/to-chat.ts';

const SCHEMA = { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] };
const ARGUMENTS = '{"command": "SaysCommand"}';

/** The chat of each turn: the second has the answer and the result of the first. */
export const AGENTS: Readonly<Record<string, (turn: 1 | 2) => object>> = {
  'Claude Code': (turn) =>
    messagesToChat({
      max_tokens: 1000,
      system: [
        {
          type: 'text',
          text: `x-anthropic-billing-header: cc_version=2.1.101.e51; cc_entrypoint=cli; cch=${turn}a5d${turn};`,
        },
        { type: 'text', text: 'SaysIdentity' },
        { type: 'text', text: 'SaysInstructions', cache_control: { type: 'ephemeral' } },
      ],
      thinking: { type: 'adaptive' },
      output_config: { effort: 'xhigh' },
      tools: [
        { name: 'Bash', description: 'FindsBash', input_schema: SCHEMA },
        { name: 'Stop', input_schema: { type: 'object', properties: {} } },
      ],
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'SaysReminder' }] },
        { role: 'system', content: 'SaysMore' },
        { role: 'user', content: [{ type: 'text', text: 'SaysQuestion' }] },
        ...(turn === 1
          ? []
          : ([
              {
                role: 'assistant',
                content: [
                  { type: 'thinking', thinking: 'SaysThought', signature: 'x' },
                  { type: 'tool_use', id: 'toolu_01', name: 'Bash', input: JSON.parse(ARGUMENTS) },
                ],
              },
              {
                role: 'user',
                content: [{ type: 'tool_result', tool_use_id: 'toolu_01', content: 'SaysResult' }],
              },
            ] as const)),
      ],
    }).chat,
  Codex: (turn) =>
    responsesToChat(
      {
        instructions: 'SaysInstructions',
        reasoning: { effort: 'medium', summary: 'auto' },
        tools: [
          { type: 'function', name: 'shell', description: 'FindsShell', strict: false, parameters: SCHEMA },
        ],
        input: [
          { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'SaysMore' }] },
          { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'SaysReminder' }] },
          { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'SaysQuestion' }] },
          ...(turn === 1
            ? []
            : ([
                {
                  type: 'reasoning',
                  summary: [],
                  content: [{ type: 'reasoning_text', text: 'SaysThought' }],
                },
                { type: 'function_call', call_id: 'call_01', name: 'shell', arguments: ARGUMENTS },
                { type: 'function_call_output', call_id: 'call_01', output: 'SaysResult' },
              ] as const)),
        ],
      } as Parameters<typeof responsesToChat>[0],
      [],
    ).chat,
  opencode: (turn) => ({
    tools: [{ type: 'function', function: { name: 'bash', description: 'FindsBash', parameters: SCHEMA } }],
    messages: [
      { role: 'system', content: 'SaysIdentity' },
      { role: 'system', content: 'SaysInstructions' },
      { role: 'user', content: [{ type: 'text', text: 'SaysQuestion' }] },
      ...(turn === 1
        ? []
        : [
            {
              role: 'assistant',
              content: '',
              reasoning_content: 'SaysThought',
              tool_calls: [
                { id: 'call_01', type: 'function', function: { name: 'bash', arguments: ARGUMENTS } },
              ],
            },
            { role: 'tool', tool_call_id: 'call_01', content: 'SaysResult' },
          ]),
    ],
  }),
};
