/** A conversation -> the member that answered it last and caches its prefix. */
import { createHash } from 'node:crypto';
import type {
  ChatCompletionRequest,
  DecisionRequest,
  TextCompletionRequest,
} from '../../../protocol/index.ts';

/** Characters of the shortest prefix of a text that gets a digest. Each further prefix is twice as long. */
const SHORTEST_TEXT = 256;

/** The fields of a request that a choice of members depends on. */
type AffinityRequest = Partial<ChatCompletionRequest & TextCompletionRequest & DecisionRequest>;

/** Maps prefixes of conversations to members, with a limit on their number (oldest removed first). */
export class Affinity<Member> {
  readonly #members = new Map<string, Member>(); // digest of a prefix -> member; oldest first
  readonly #capacity: number;

  constructor(capacity = 10_000) {
    this.#capacity = capacity;
  }

  /** Returns digests of the prefixes of a request, shortest first, then one of its session. */
  static digests(request: AffinityRequest): string[] {
    const { model, session_id } = request;
    const session = session_id == null ? [] : prefixes(['session', model], [session_id]);
    return [...Affinity.#prefixDigests(request), ...session];
  }

  /** Returns digests of the prefixes of a request's messages, text or input of questions, shortest first. Empty for other requests. */
  static #prefixDigests(request: AffinityRequest): string[] {
    const { model, cache_salt, tools, prompt, questions, input } = request;
    const messages = request.messages ?? (questions && Array.isArray(input) ? input : undefined);
    if (messages)
      return prefixes(
        [model, cache_salt, tools],
        messages.map((one) => JSON.stringify(one)),
      );
    const given = prompt ?? (questions ? (input as string) : undefined);
    if (given === undefined) return [];
    const first = typeof given === 'string' || typeof given[0] === 'number' ? given : given[0]; // of several prompts
    const text = typeof first === 'string' ? first : JSON.stringify(first);
    const parts: string[] = [];
    for (let from = 0, to = SHORTEST_TEXT; from < text.length; from = to, to *= 2)
      parts.push(text.slice(from, to));
    return prefixes([model, cache_salt], parts);
  }

  /** Returns the member that has the longest known prefix, or null if no prefix is known. */
  find(digests: readonly string[]): Member | null {
    for (let i = digests.length - 1; i >= 0; i--) {
      const member = this.#members.get(digests[i]!);
      if (member !== undefined) return member;
    }
    return null;
  }

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

function prefixes(head: readonly unknown[], parts: readonly string[]): string[] {
  const hash = createHash('sha256').update(JSON.stringify(head));
  return parts.map((part) => hash.update(part).copy().digest('base64'));
}
