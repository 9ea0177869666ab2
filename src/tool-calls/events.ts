/** What a parser finds in a text, piece by piece. Streams and whole answers use the same events. */

/** What a parser found in the text so far. */
export type ToolCallEvent =
  | { readonly kind: 'content'; readonly text: string }
  /** A call whose name is complete. Its arguments follow. */
  | { readonly kind: 'call_start'; readonly index: number; readonly id: string; readonly name: string }
  /** The next piece of the arguments, JSON text of an object. */
  | { readonly kind: 'call_arguments'; readonly index: number; readonly delta: string }
  /** The arguments are complete and valid JSON. */
  | { readonly kind: 'call_end'; readonly index: number }
  /**
   * A started call never ended: what came of its arguments is all there is. `text`: of a malformed call all that the model wrote,
   * as content; empty where the text ended inside the call.
   */
  | { readonly kind: 'call_broken'; readonly index: number; readonly text: string };
