/** The input of a decision -> equivalent messages of a chat, and their paths in the caller's request. */
import type { ErrorDetail } from '../errors.ts';
import { fault } from './faults.ts';
import type {
  ContentPart,
  DecisionInputItem,
  DecisionInputMessage,
  DecisionPart,
  Message,
  ResponseInputPart,
  ToolCall,
} from './generated/request-types.ts';
import { PathTranslation } from './path-translation.ts';
import { freeFormFault } from './rules/free-form.ts';

/** A message under construction. */
type Turn = { role: string; content: ContentPart[]; tool_calls?: ToolCall[]; tool_call_id?: string };

/** Separator between consecutive user messages that are merged, because many templates require alternating turns. */
const BLANK_LINE = '\n\n';

/** Translates items. Consecutive user messages are merged, and consecutive calls are put into one message. */
export function toDecisionMessages(input: string | readonly DecisionInputItem[]): {
  readonly messages: readonly Message[];
  readonly paths: PathTranslation;
} {
  if (typeof input === 'string')
    return {
      messages: [{ role: 'user', content: input }],
      paths: new PathTranslation({ messages: 'input', 'messages.0': 'input' }),
    };
  const paths = new PathTranslation({ messages: 'input' });
  const turns: Turn[] = [];
  /** Returns the turn of an item: the last turn if the item continues it, otherwise a new one. */
  const turnOf = (role: string, from: string, goesOn: (last: Turn) => boolean): Turn => {
    const last = turns.at(-1);
    if (last && last.role === role && goesOn(last)) return last;
    const turn: Turn = { role, content: [] };
    turns.push(turn);
    paths.note(`messages.${turns.length - 1}`, from);
    return turn;
  };
  const add = (turn: Turn, from: string, parts: readonly ContentPart[]): void => {
    for (const [k, part] of parts.entries()) {
      const at = `messages.${turns.length - 1}.content.${turn.content.length}`;
      paths.note(at, parts.length > 1 ? `${from}.${k}` : from);
      turn.content.push(part);
    }
  };
  for (const [i, item] of input.entries()) {
    const from = `input.${i}`;
    switch (item.type) {
      case 'function_call':
      case 'custom_tool_call': {
        const turn = turnOf('assistant', from, () => true);
        turn.tool_calls ??= [];
        const call = toCall(item);
        paths.note(`messages.${turns.length - 1}.tool_calls.${turn.tool_calls.length}.${call.type}`, from);
        turn.tool_calls.push(call);
        break;
      }
      case 'function_call_output':
      case 'custom_tool_call_output': {
        const turn = turnOf('tool', from, () => false);
        turn.tool_call_id = item.call_id;
        add(turn, `${from}.output`, partsOf(item.output));
        break;
      }
      default: {
        const { role, content } = item as DecisionInputMessage;
        const turn = turnOf(role, from, ({ tool_calls }) => role === 'user' || !tool_calls);
        if (turn.content.length > 0) add(turn, from, [{ type: 'text', text: BLANK_LINE }]);
        add(turn, `${from}.content`, partsOf(content));
      }
    }
  }
  return { messages: turns.map(toMessage), paths };
}

/** Builds the message of a turn. Adjacent texts are merged, so that templates get a plain text if there is nothing else. */
function toMessage({ content, ...turn }: Turn): Message {
  if (!content.every(isText)) return { ...turn, content } as Message;
  return { ...turn, content: content.map(({ text }) => text).join('') } as Message;
}

/** Returns the parts of a text or of a list of parts. A line break separates adjacent texts. */
export function partsOf(content: string | readonly (DecisionPart | ResponseInputPart)[]): ContentPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  const parts = content.map(toPart);
  return parts.map((part, k) => {
    const isLine = isText(part) && isText(parts[k - 1]);
    return isLine ? { type: 'text', text: `\n${part.text}` } : part;
  });
}

/** Returns a text, or the text or data of an only part, alone or in an only message of the user. Returns null for other content. */
export function dataOf(content: string | readonly (DecisionInputItem | DecisionPart)[]): unknown {
  if (typeof content === 'string') return content;
  const [only, ...others] = content;
  if (only === undefined || others.length > 0) return null;
  if (only.type === 'input_json') return only.data;
  if (only.type === 'input_text') return only.text;
  return 'role' in only && only.role === 'user' ? dataOf(only.content) : null;
}

function isText(part: ContentPart | undefined): part is { readonly type: 'text'; readonly text: string } {
  return typeof part === 'object' && part.type === 'text';
}

function toPart(part: DecisionPart | ResponseInputPart): ContentPart {
  switch (part.type) {
    case 'input_image': {
      const { image_url: url, detail } = part;
      return { type: 'image_url', image_url: { url, ...(detail ? { detail } : {}) } } as ContentPart;
    }
    case 'input_json':
      return { type: 'text', text: JSON.stringify(part.data) };
    case 'refusal':
      return { type: 'text', text: part.refusal };
    case 'input_file':
      return {
        type: 'file',
        file: { file_data: part.file_data ?? '', filename: part.filename },
      } as ContentPart;
    default:
      return { type: 'text', text: part.text };
  }
}

function toCall(item: Extract<DecisionInputItem, { type: 'function_call' | 'custom_tool_call' }>): ToolCall {
  return item.type === 'custom_tool_call'
    ? { id: item.call_id, type: 'custom', custom: { name: item.name, input: item.input } }
    : { id: item.call_id, type: 'function', function: { name: item.name, arguments: item.arguments } };
}

/** Returns faults that the schema does not find: results without a call, and values that are not JSON data. */
export function inputFaults(input: string | readonly DecisionInputItem[]): ErrorDetail[] {
  if (typeof input === 'string') return [];
  const calls = new Set<string>();
  return input.flatMap((item, i) => {
    const loc = ['input', String(i)];
    if (item.type === 'function_call' || item.type === 'custom_tool_call') calls.add(item.call_id);
    if (item.type === 'function_call_output' || item.type === 'custom_tool_call_output')
      return calls.has(item.call_id)
        ? []
        : [fault([...loc, 'call_id'], 'value', 'the id of a call that stands before it', item.call_id)];
    return jsonFaults([...loc, 'content'], (item as DecisionInputMessage).content);
  });
}

/** Returns the faults of parts whose data is not JSON. */
export function jsonFaults(loc: readonly string[], content: unknown): ErrorDetail[] {
  if (!Array.isArray(content)) return [];
  return (content as readonly DecisionPart[]).flatMap((part, k) => {
    const found = part.type === 'input_json' ? freeFormFault([...loc, String(k), 'data'], part.data) : null;
    return found ? [found] : [];
  });
}
