/** A request and its answer as the endpoints see them, whatever server they came through. */
import type { EventStream } from './event-stream.ts';

/** A request. */
export type WireRequest = {
  readonly method: string;
  readonly url: URL;
  /** A header by its name in lower case; null when there is none. */
  readonly header: (name: string) => string | null;
  readonly body: WireBody;
  /** Of the client, where the server knows it. */
  readonly address: string | undefined;
  /** Calls back when the client goes away before it has its answer. Returns what ends that. */
  readonly onLeave: (callback: () => void) => () => void;
};

/** The body of a request. */
export type WireBody = {
  /** Hands its parts over as they come. Rejects when it breaks off, and with what `take` throws. */
  readonly read: (take: (part: Uint8Array) => void) => Promise<void>;
  /** Says that the rest is not wanted. */
  readonly stop: () => void;
};

/** An answer. */
export type WireResponse = {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Record<string, string>;
  readonly body: string | EventStream;
};

/** An answer of JSON. */
export function json(body: unknown, status = 200, headers: Record<string, string> = {}): WireResponse {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) };
}
