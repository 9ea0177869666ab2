/** Responses by their ids, for requests that go on from them. Bounded: the oldest ones give way. */
import { errorAt } from '../../errors.ts';
import type {
  Message,
  ResponseInputItem,
  ResponseItemReference,
  ResponseObject,
  ResponseRequest,
  ResponseStoredItem,
} from '../../protocol/index.ts';

/** An item that is no reference to one. */
export type ResponseItem = Exclude<ResponseInputItem, ResponseItemReference>;

/** A response, its own input, and the chat up to its end. */
export type StoredResponse = {
  readonly response: ResponseObject;
  readonly input: readonly ResponseStoredItem[];
  readonly messages: readonly Message[];
};

/** Most responses that are kept, and most characters of their JSON. */
const MOST_RESPONSES = 1024;
const MOST_CHARACTERS = 64 * 2 ** 20;

export class ResponseStore {
  readonly #kept = new Map<string, { readonly stored: StoredResponse; readonly characters: number }>();
  readonly #items = new Map<string, { readonly item: ResponseItem; readonly owner: string }>(); // the newest response with it
  #characters = 0;

  add(stored: StoredResponse): void {
    const { id } = stored.response;
    const characters = JSON.stringify(stored).length;
    this.#remove(id);
    this.#kept.set(id, { stored, characters });
    this.#characters += characters;
    for (const [itemId, item] of itemsOf(stored)) this.#items.set(itemId, { item, owner: id });
    for (const [oldest] of this.#kept) {
      if (this.#kept.size <= MOST_RESPONSES && this.#characters <= MOST_CHARACTERS) return;
      this.#remove(oldest);
    }
  }

  /** Finds a response. Throws `NOT_FOUND`, naming `field`. */
  get(id: string, field: string): StoredResponse {
    const found = this.#kept.get(id);
    if (found) return found.stored;
    throw errorAt(field, 'NOT_FOUND', `there is no stored response ${id.slice(0, 200)}`);
  }

  /** The input with the items that it refers to. Throws `NOT_FOUND` for one that is not here. */
  resolve(input: ResponseRequest['input']): string | ResponseItem[] {
    if (typeof input === 'string') return input;
    return input.map((item, i) => {
      if (item.type !== 'item_reference') return item;
      const found = this.#items.get(item.id);
      if (found) return found.item;
      throw errorAt(`input.${i}.id`, 'NOT_FOUND', `there is no stored item ${item.id.slice(0, 200)}`);
    });
  }

  /** Forgets a response. Throws `NOT_FOUND`. */
  delete(id: string): void {
    this.get(id, 'id');
    this.#remove(id);
  }

  #remove(id: string): void {
    const found = this.#kept.get(id);
    if (!found) return;
    this.#kept.delete(id);
    for (const [itemId] of itemsOf(found.stored))
      if (this.#items.get(itemId)?.owner === id) this.#items.delete(itemId);
    this.#characters -= found.characters;
  }
}

/** Items that can be referred to, by their ids. */
function itemsOf({ response, input }: StoredResponse): [id: string, item: ResponseItem][] {
  return [...input, ...response.output].map((item) => [item.id, item as ResponseItem]);
}
