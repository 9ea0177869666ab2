/** Responses by their ids, for requests that continue them. The store is bounded, and the oldest responses are evicted. */
import { errorAt } from '../../../errors.ts';
import type {
  Message,
  ResponseInputItem,
  ResponseItemReference,
  ResponseObject,
  ResponseRequest,
  ResponseStoredItem,
} from '../../../protocol/index.ts';

/** An input item other than a reference to an item. */
export type ResponseItem = Exclude<ResponseInputItem, ResponseItemReference>;

/** A response, its own input, and the chat up to its end. */
export type StoredResponse = {
  /** Key of the client that asked for it. */
  readonly owner: string;
  readonly response: ResponseObject;
  readonly input: readonly ResponseStoredItem[];
  readonly messages: readonly Message[];
};

/** Most responses that are kept, and most characters of their JSON in total. */
const MOST_RESPONSES = 1024;
const MOST_CHARACTERS = 64 * 2 ** 20;

export class ResponseStore {
  readonly #kept = new Map<string, { readonly stored: StoredResponse; readonly characters: number }>();
  /** Items by owner and id. If several responses have an item with the same id, the newest one counts. */
  readonly #items = new Map<string, { readonly item: ResponseItem; readonly response: string }>();
  #characters = 0;

  add(stored: StoredResponse): void {
    const { owner } = stored;
    const { id } = stored.response;
    const characters = JSON.stringify(stored).length;
    this.#remove(id);
    this.#kept.set(id, { stored, characters });
    this.#characters += characters;
    for (const [itemId, item] of itemsOf(stored))
      this.#items.set(keyOf(owner, itemId), { item, response: id });
    for (const [oldest] of this.#kept) {
      if (this.#kept.size <= MOST_RESPONSES && this.#characters <= MOST_CHARACTERS) return;
      this.#remove(oldest);
    }
  }

  /**
   * Finds a response that `viewer` may read; null may read all. Throws `NOT_FOUND`, naming `field`, also for a response of another owner.
   */
  get(id: string, field: string, viewer: string | null): StoredResponse {
    const found = this.#kept.get(id);
    if (found && (viewer === null || viewer === found.stored.owner)) return found.stored;
    throw errorAt(field, 'NOT_FOUND', `there is no stored response ${id.slice(0, 200)}`);
  }

  /** Replaces references in the input by the items of the owner's responses. Throws `NOT_FOUND` for an unknown item. */
  resolve(input: ResponseRequest['input'], owner: string): string | ResponseItem[] {
    if (typeof input === 'string') return input;
    return input.map((item, i) => {
      if (item.type !== 'item_reference') return item;
      const found = this.#items.get(keyOf(owner, item.id));
      if (found) return found.item;
      throw errorAt(`input.${i}.id`, 'NOT_FOUND', `there is no stored item ${item.id.slice(0, 200)}`);
    });
  }

  /** Deletes a response. Throws `NOT_FOUND`. */
  delete(id: string, viewer: string | null): void {
    this.get(id, 'id', viewer);
    this.#remove(id);
  }

  #remove(id: string): void {
    const found = this.#kept.get(id);
    if (!found) return;
    this.#kept.delete(id);
    for (const [itemId] of itemsOf(found.stored)) {
      const key = keyOf(found.stored.owner, itemId);
      if (this.#items.get(key)?.response === id) this.#items.delete(key);
    }
    this.#characters -= found.characters;
  }
}

function keyOf(owner: string, item: string): string {
  return JSON.stringify([owner, item]);
}

/** Returns the items that can be referred to, with their ids. */
function itemsOf({ response, input }: StoredResponse): [id: string, item: ResponseItem][] {
  return [...input, ...response.output].map((item) => [item.id, item as ResponseItem]);
}
