/** Items of the responses API from conversations with other servers: calls and results of their tools, and compactions. */
import * as s from './schema.ts';

/** Definition -> the kinds of items that it describes. */
const KINDS = {
  ResponseHostedCallItem: ['local_shell_call', 'shell_call', 'apply_patch_call'],
  ResponseHostedResultItem: ['local_shell_call_output', 'shell_call_output', 'apply_patch_call_output'],
  ResponseMcpCallItem: ['mcp_call'],
  ResponseCompactionItem: ['compaction', 'compaction_summary'],
  ResponseServerItem: [
    'web_search_call',
    'file_search_call',
    'code_interpreter_call',
    'image_generation_call',
    'tool_search_call',
    'tool_search_output',
    'mcp_list_tools',
    'mcp_approval_request',
    'mcp_approval_response',
  ],
} as const;

/** Kind of an item -> its definition. */
export const HISTORY_ITEMS: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(KINDS).flatMap(([name, kinds]) => kinds.map((kind) => [kind, name])),
);

function item(
  name: keyof typeof KINDS,
  description: string,
  required: readonly string[],
  more: object,
): s.Schema {
  return {
    description,
    required: ['type', ...required],
    properties: { type: s.oneOf('Kind of the item.', KINDS[name]), ...more },
    additionalProperties: true,
  };
}

const callId: s.Schema = s.string('Id that the result refers to.');

export const responseHistoryDefinitions: s.Definitions = {
  ResponseHostedCallItem: item(
    'ResponseHostedCallItem',
    "A call of a tool whose form is OpenAI's: `action` or `operation` are its arguments.",
    ['call_id'],
    { call_id: callId },
  ),
  ResponseHostedResultItem: item('ResponseHostedResultItem', 'The result of such a call.', [], {
    call_id: s.stringOrNull('Id of the call. Absent: `id` is.'),
    id: s.stringOrNull('Id of the item, or of the call.'),
  }),
  ResponseMcpCallItem: item(
    'ResponseMcpCallItem',
    'A call that another server made, with its result.',
    ['id', 'name', 'arguments'],
    {
      id: callId,
      name: s.string('Name of the called tool.', { minLength: 1 }),
      arguments: s.string('JSON text of the arguments.'),
      output: s.stringOrNull('The result.'),
    },
  ),
  ResponseCompactionItem: item(
    'ResponseCompactionItem',
    'What a compaction left of a conversation. That of another server is ignored.',
    ['encrypted_content'],
    { encrypted_content: s.string('The text, as it came.') },
  ),
  ResponseServerItem: item(
    'ResponseServerItem',
    "What a tool of OpenAI's servers did. It is kept with the input; the model does not see it.",
    [],
    {},
  ),
};
