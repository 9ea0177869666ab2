/** The messages of a chat -> the same texts in messages that its template shows. */
import type { ChatContentPart, ChatMessage } from '../protocol/index.ts';
import type { TemplateTraits } from './template-traits.ts';

/**
 * Placement of texts. `system`: system messages stay, are joined with the first one, or are put before the next text of the user.
 * `results`: results of calls stay, or become texts of the user.
 */
export type Arrangement = {
  readonly system: 'kept' | 'first' | 'user';
  readonly results: 'kept' | 'user';
};

/** A content part. `path` is set if the part was moved from another message: it is the field of the request where it was given. */
export type PlacedPart = ChatContentPart & { readonly path?: string };

/** A message, and its index among those of the request. */
export type PlacedMessage = Omit<ChatMessage, 'content'> & {
  readonly index: number;
  readonly content: readonly PlacedPart[];
};

type Role = Pick<ChatMessage, 'role'>;

const SEPARATOR = '\n\n';

/** Returns the arrangements to try, in order. The first is the one that the template is known to take. */
export function arrangementsOf(messages: readonly Role[], traits: TemplateTraits): readonly Arrangement[] {
  if (!traits.showsChats) return [{ system: 'kept', results: 'kept' }];
  const hasResults = messages.some(({ role }) => role === 'tool');
  const results = hasResults && !traits.calls.showsResults ? 'user' : 'kept';
  const steps = ['kept', 'first', 'user'] as const;
  const possible = steps.slice(steps.indexOf(systemStep(messages, traits)));
  const kept = messages.some(isInstruction) ? possible : possible.slice(0, 1);
  return kept.map((system) => ({ system, results }));
}

function systemStep(messages: readonly Role[], traits: TemplateTraits): Arrangement['system'] {
  if (!messages.some(isInstruction)) return 'kept';
  const { systemPlaces } = traits;
  if (!systemPlaces.first) return 'user';
  const head = headLength(messages);
  const isMoved = (head > 1 && !systemPlaces.many) || messages.slice(head).some(isInstruction);
  if (!isMoved) return 'kept';
  return head <= 1 || systemPlaces.many ? (systemPlaces.middle ? 'kept' : 'first') : 'first';
}

/** Returns true if a message has instructions for the model. */
export function isInstruction({ role }: Role): boolean {
  return role === 'system' || role === 'developer';
}

function headLength(messages: readonly Role[]): number {
  const end = messages.findIndex((message) => !isInstruction(message));
  return end < 0 ? messages.length : end;
}

export function arrange(
  messages: readonly PlacedMessage[],
  traits: TemplateTraits,
  { system, results }: Arrangement,
): readonly PlacedMessage[] {
  let placed = messages;
  if (system === 'first') placed = withOneSystem(placed, traits.systemPlaces.many);
  if (system === 'user') placed = asUserTexts(placed, isInstruction);
  if (results === 'user') placed = asUserTexts(placed, ({ role }) => role === 'tool');
  return placed;
}

/**
 * Returns the messages with their indexes. `instructions` is a system text to add behind the first system message, or as the first message;
 * null adds none.
 */
export function placeMessages(
  messages: readonly ChatMessage[],
  traits: TemplateTraits,
  instructions: string | null,
): readonly PlacedMessage[] {
  const placed = messages.map((message, index) => placedAt(message, index, traits));
  if (instructions === null) return placed;
  const own: PlacedMessage = {
    ...NO_OTHER_FIELDS,
    index: 0,
    role: 'system',
    content: [{ type: 'text', text: instructions }],
  };
  const [first, ...others] = placed;
  return first && isInstruction(first) ? [joinMessages(first, own), ...others] : [own, ...placed];
}

/** The fields of a message that has only a role and content. */
export const NO_OTHER_FIELDS: Omit<ChatMessage, 'role' | 'content'> = {
  name: null,
  tool_calls: null,
  tool_call_id: null,
  reasoning: null,
  refusal: null,
  tools: null,
};

/** Copies field by field, because a spread of each message takes several times as long as rendering it. */
function placedAt(message: ChatMessage, index: number, traits: TemplateTraits): PlacedMessage {
  return {
    role: message.role === 'developer' && traits.showsChats ? traits.developer : message.role,
    content: message.content,
    name: message.name,
    tool_calls: message.tool_calls,
    tool_call_id: message.tool_call_id,
    reasoning: message.reasoning,
    refusal: message.refusal,
    tools: message.tools,
    index,
  };
}

/** Joins later system messages with the last of those at the beginning, or all with the first. */
function withOneSystem(messages: readonly PlacedMessage[], keepsHead: boolean): readonly PlacedMessage[] {
  const all = messages.filter(isInstruction);
  const head = headLength(messages);
  const kept = keepsHead && head > 0 ? head : 1;
  const target = all[kept - 1]!;
  const joined = all.slice(kept).reduce(joinMessages, target);
  return [...all.slice(0, kept - 1), joined, ...messages.filter((message) => !isInstruction(message))];
}

/** Puts the texts of some messages before the next text of the user, or behind the last one. */
function asUserTexts(
  messages: readonly PlacedMessage[],
  isMoved: (message: PlacedMessage) => boolean,
): readonly PlacedMessage[] {
  const placed: PlacedMessage[] = [];
  let isOpen = false; // the last message is a text that was moved
  for (const message of messages) {
    const moved = isMoved(message);
    const own = moved ? { ...message, role: 'user', name: null, tool_call_id: null } : message;
    const last = placed.at(-1);
    const joins = last?.role === 'user' && own.role === 'user' && (isOpen || moved);
    if (joins) placed[placed.length - 1] = { ...joinMessages(last, own), index: own.index };
    else placed.push(own);
    isOpen = moved;
  }
  return placed;
}

function joinMessages(first: PlacedMessage, second: PlacedMessage): PlacedMessage {
  const [before, after] = [located(first), located(second)];
  const [end, start] = [before.at(-1), after[0]];
  if (end === undefined || start === undefined) return { ...first, content: [...before, ...after] };
  const isText = end.type === 'text' && start.type === 'text';
  const middle: PlacedPart[] = isText
    ? [{ type: 'text', text: [end.text, start.text].filter((text) => text !== '').join(SEPARATOR) }]
    : [end, start];
  return { ...first, content: [...before.slice(0, -1), ...middle, ...after.slice(1)] };
}

function located({ content, index }: PlacedMessage): readonly PlacedPart[] {
  return content.map((part, at) =>
    part.type === 'media' && part.path === undefined
      ? { ...part, path: `messages.${index}.content.${at}` }
      : part,
  );
}
