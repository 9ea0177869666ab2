/** A prompt as given -> its tokens, and the text and bytes that `echo` shows. */

import { atField } from '../../common/index.ts';
import { NO_BYTES, type Tokenizer } from '../../engine/tokenizer/index.ts';
import {
  type GivenPrompt,
  throwFaults,
  tokenIdFaults,
  type ValidTextCompletionRequest,
} from '../../protocol/index.ts';
import { type Room, requireRoomFor } from '../huge-prompt.ts';
import { mustFit, type TokenPrompt } from '../prompt.ts';
import { fillInMiddle } from './fill-in-middle.ts';

const NONE = new Int32Array(0);

/** Encodes a prompt. Throws `INVALID_REQUEST` for ids outside the vocabulary. */
export async function encodePrompt(
  { path, content }: GivenPrompt,
  { suffix, addSpecial, chat }: ValidTextCompletionRequest,
  room: Room,
): Promise<TokenPrompt> {
  const { tokenizer } = room;
  if (typeof content !== 'string') {
    throwFaults(tokenIdFaults(path.split('.'), content, tokenizer.vocabSize));
    return { field: path, ids: Int32Array.from(content), added: NONE };
  }
  if (mustFit(chat)) await requireRoomFor(content, path, room);
  const added = await tokenizer.encode('', { addSpecial, parseSpecial: true });
  const ids = await atField(path, () =>
    suffix === null
      ? tokenizer.encode(content, { addSpecial, parseSpecial: true })
      : fillInMiddle(tokenizer, content, suffix, added),
  );
  return { field: path, ids, added };
}

/** Text that `echo` puts before an answer. */
export type Echo = {
  readonly text: string;
  /** Bytes of each token in the text. Empty for tokens that the tokenizer has added. */
  readonly bytes: readonly Uint8Array[];
};

/** Returns the text of a prompt as it was given; if the prompt was cut, the text of the tokens that are left. */
export function echoOf(
  given: GivenPrompt,
  { ids: whole, added }: TokenPrompt,
  used: readonly number[],
  tokenizer: Tokenizer,
): Echo {
  let hidden = 0;
  while (hidden < added.length && added[hidden] === used[hidden]) hidden += 1;
  const bytes = used.map((id, i) => (i < hidden ? NO_BYTES : tokenizer.bytesOf(id)));
  if (typeof given.content === 'string' && used.length === whole.length)
    return { text: given.content, bytes };
  return { text: Buffer.concat(bytes).toString('utf8'), bytes };
}
