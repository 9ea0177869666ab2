/** The tools of a checked request in each of their forms -> functions, and the choice among them. */
import type {
  ChatCompletionRequest,
  CustomTool,
  FunctionTool,
  GrammarInputFormat,
  Tool,
} from './generated/request-types.ts';
import type { ValidChatRequest } from './valid-chat-request.ts';

/** The only argument of the function that represents a custom tool. */
export const CUSTOM_INPUT = 'input';

type ValidTools = Pick<
  ValidChatRequest,
  'tools' | 'tool_choice' | 'allowed_tools' | 'custom_tools' | 'uses_functions'
>;

/** Returns the tools of a request in the newer form, or null if it has none. */
export function givenTools(
  request: Pick<ChatCompletionRequest, 'tools' | 'functions'>,
): readonly Tool[] | null {
  const { tools, functions } = request;
  return tools ?? functions?.map((one): Tool => ({ type: 'function', function: one })) ?? null;
}

/** Normalizes all fields about tools. `functions` and `function_call` are their older form. */
export function normalizeTools(request: ChatCompletionRequest): ValidTools {
  const tools = givenTools(request) ?? [];
  const custom = tools.filter((tool) => tool.type === 'custom');
  return {
    tools: tools.map(toFunctionTool),
    custom_tools: new Map(custom.map((tool) => [tool.custom.name, grammarOf(tool)])),
    uses_functions: request.tools == null && request.functions != null,
    ...toChoice(request.tool_choice ?? request.function_call ?? 'auto', tools.length > 0),
  };
}

/** Returns a tool as chat templates read it. It is a copy, because callers may change theirs later. */
export function toFunctionTool(tool: Tool): FunctionTool {
  if (tool.type === 'function') return { ...tool, function: { ...tool.function } };
  const { name, description } = tool.custom;
  const grammar = grammarOf(tool);
  const input = { type: 'string', ...(grammar ? { description: inWords(grammar) } : {}) };
  return {
    type: 'function',
    function: {
      name,
      ...(description == null ? {} : { description }),
      parameters: {
        type: 'object',
        properties: { [CUSTOM_INPUT]: input },
        required: [CUSTOM_INPUT],
        additionalProperties: false,
      },
    },
  };
}

function grammarOf({ custom }: CustomTool): GrammarInputFormat['grammar'] | null {
  return custom.format?.type === 'grammar' ? custom.format.grammar : null;
}

function inWords({ syntax, definition }: GrammarInputFormat['grammar']): string {
  return `Text that follows this ${syntax === 'lark' ? 'Lark grammar' : 'regular expression'}:\n${definition}`;
}

type Choice = NonNullable<ChatCompletionRequest['tool_choice'] | ChatCompletionRequest['function_call']>;

function toChoice(given: Choice, hasTools: boolean): Pick<ValidTools, 'tool_choice' | 'allowed_tools'> {
  if (!hasTools) return { tool_choice: 'none', allowed_tools: null };
  if (typeof given === 'string') return { tool_choice: given, allowed_tools: null };
  if (!('type' in given)) return { tool_choice: { name: given.name }, allowed_tools: null };
  if (given.type !== 'allowed_tools') return { tool_choice: { name: nameOf(given) }, allowed_tools: null };
  const { mode, tools } = given.allowed_tools;
  return { tool_choice: mode, allowed_tools: new Set(tools.map(nameOf)) };
}

/** Returns the name of a tool, or of a choice that names a tool. */
export function nameOf(
  tool:
    | { readonly type: 'function'; readonly function: { readonly name: string } }
    | { readonly type: 'custom'; readonly custom: { readonly name: string } },
): string {
  return tool.type === 'custom' ? tool.custom.name : tool.function.name;
}
