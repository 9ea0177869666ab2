/** Events of a parser that reads a text piece by piece. Streams and whole answers use the same events. */

/** An event of a parser. */
export type ToolCallEvent =
  | { readonly kind: 'content'; readonly text: string }
  /** A call whose name is complete. Its arguments follow. */
  | { readonly kind: 'call_start'; readonly index: number; readonly id: string; readonly name: string }
  /** The next piece of the arguments, JSON text of an object. */
  | { readonly kind: 'call_arguments'; readonly index: number; readonly delta: string }
  /** The arguments are complete and valid JSON. */
  | { readonly kind: 'call_end'; readonly index: number }
  /**
   * A started call did not end, so its arguments are incomplete. For a malformed call `text` is all that the model wrote, as content;
   * it is empty if the text ended inside the call.
   */
  | { readonly kind: 'call_broken'; readonly index: number; readonly text: string };
