/** The calls and results of a chat -> ids and names in the form that its template takes. */
import { createHash } from 'node:crypto';
import type { ChatMessage, ChatToolCall } from '../protocol/index.ts';
import type { CallTraits } from './call-traits.ts';

const NINE = /^[a-zA-Z0-9]{9}$/;
const NAMED = /^functions\..+:\d+$/;

/** Fields of a call's result that the template reads. */
export type ResultFields = { readonly tool_call_id?: string; readonly name?: string };

type Call = { readonly given: string | null; readonly id: string | null; readonly name: string };

export class CallIds {
  readonly #calls = new Map<ChatToolCall, string | null>();
  readonly #results = new Map<number, ResultFields>();

  constructor(messages: readonly ChatMessage[], traits: Pick<CallTraits, 'ids' | 'needsId' | 'needsName'>) {
    let open: Call[] = []; // calls without a result
    let count = 0;
    for (const [index, message] of messages.entries()) {
      for (const call of message.tool_calls ?? []) {
        const { name } = call.function;
        const id = idFor(call.id, name, count, traits);
        this.#calls.set(call, id);
        open.push({ given: call.id, id, name });
        count += 1;
      }
      if (message.role !== 'tool') continue;
      const { tool_call_id: given, name } = message;
      const call =
        given === null
          ? (open.find((one) => name !== null && one.name === name) ?? open[0])
          : open.findLast((one) => one.given === given);
      open = open.filter((one) => one !== call);
      const id = call ? call.id : given;
      this.#results.set(index, {
        ...(id === null ? {} : { tool_call_id: id }),
        ...(traits.needsName && name === null && call ? { name: call.name } : {}),
      });
    }
  }

  /** Returns the id of a call, or null if it has none and the template needs none. */
  idOf(call: ChatToolCall): string | null {
    return this.#calls.get(call) ?? null;
  }

  /** Returns the id and name of the result in the message at this index. */
  resultFields(index: number): ResultFields {
    return this.#results.get(index) ?? {};
  }
}

/**
 * Returns an id in the form that the template takes. A shortened id depends only on the given one, so that it stays the same as the chat
 * grows.
 */
function idFor(
  given: string | null,
  name: string,
  count: number,
  { ids, needsId }: Pick<CallTraits, 'ids' | 'needsId'>,
): string | null {
  if (ids === 'named') return given !== null && NAMED.test(given) ? given : `functions.${name}:${count}`;
  if (given === null) return ids === 'nine' || needsId ? `call${String(count).padStart(5, '0')}` : null;
  if (ids === 'any' || NINE.test(given)) return given;
  return createHash('sha256').update(given).digest('hex').slice(0, 9);
}
