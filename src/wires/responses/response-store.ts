/** Responses by their ids, for requests that go on from them. Bounded: the oldest ones give way. */
import { OnpolicyError } from '../../errors.ts';
import type { Message, ResponseObject, ResponseStoredItem } from '../../protocol/index.ts';

/** A response, its own input, and the chat up to its end. */
export type StoredResponse = {
  readonly response: ResponseObject;
  readonly input: readonly ResponseStoredItem[];
  readonly messages: readonly Message[];
};

/** Most responses that are kept, and most characters of their JSON. */
const MOST_RESPONSES = 1024;
const MOST_CHARACTERS = 64 * 2 ** 20;

/** Keeps responses in memory. */
export class ResponseStore {
  readonly #kept = new Map<string, { readonly stored: StoredResponse; readonly characters: number }>();
  #characters = 0;

  /** Keeps a response. */
  add(stored: StoredResponse): void {
    const { id } = stored.response;
    const characters = JSON.stringify(stored).length;
    this.#remove(id);
    this.#kept.set(id, { stored, characters });
    this.#characters += characters;
    for (const [oldest] of this.#kept) {
      if (this.#kept.size <= MOST_RESPONSES && this.#characters <= MOST_CHARACTERS) return;
      this.#remove(oldest);
    }
  }

  /** Finds a response. Throws `NOT_FOUND`, naming `field`. */
  get(id: string, field: string): StoredResponse {
    const found = this.#kept.get(id);
    if (found) return found.stored;
    throw new OnpolicyError('NOT_FOUND', `${field}: there is no stored response ${id.slice(0, 200)}`, {
      param: field,
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
    this.#characters -= found.characters;
  }
}
