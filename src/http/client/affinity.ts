/** A conversation -> the member that answered it last and caches its prefix. */
import { createHash } from 'node:crypto';
import type { ChatCompletionRequest, TextCompletionRequest } from '../../protocol/index.ts';

const SHORTEST_TEXT = 256;

/** Maps prefixes of conversations to members, with a limit on their number (oldest removed first). */
export class Affinity<Member> {
  readonly #members = new Map<string, Member>(); // digest of a prefix -> member; oldest first
  readonly #capacity: number;

  constructor(capacity = 10_000) {
    this.#capacity = capacity;
  }

  /** Digests of the conversation's prefixes, shortest first: one per message. */
  static digests({ model, cache_salt, tools, messages }: ChatCompletionRequest): string[] {
    const hash = createHash('sha256').update(JSON.stringify([model, cache_salt, tools]));
    return messages.map((message) => hash.update(JSON.stringify(message)).copy().digest('base64'));
  }

  /** Digests of a text's beginnings, shortest first: of 256 characters, 512 and so on, and of all. Of several prompts the first counts. */
  static textDigests({ model, cache_salt, prompt }: TextCompletionRequest): string[] {
    const first = typeof prompt === 'string' || typeof prompt[0] === 'number' ? prompt : prompt[0];
    const text = typeof first === 'string' ? first : JSON.stringify(first);
    const hash = createHash('sha256').update(JSON.stringify([model, cache_salt]));
    const digests: string[] = [];
    for (let from = 0, to = SHORTEST_TEXT; from < text.length; from = to, to *= 2)
      digests.push(hash.update(text.slice(from, to)).copy().digest('base64'));
    return digests;
  }

  /** The member of the longest known prefix; null if none is known. */
  find(digests: readonly string[]): Member | null {
    for (let i = digests.length - 1; i >= 0; i--) {
      const member = this.#members.get(digests[i]!);
      if (member !== undefined) return member;
    }
    return null;
  }

  /** Assigns a conversation to a member. */
  note(digests: readonly string[], member: Member): void {
    for (const digest of digests) {
      this.#members.delete(digest);
      this.#members.set(digest, member);
    }
    for (const digest of this.#members.keys()) {
      if (this.#members.size <= this.#capacity) break;
      this.#members.delete(digest);
    }
  }
}
