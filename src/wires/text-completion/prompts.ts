/** A prompt as given -> its tokens, and the text and the bytes of them that `echo` shows. */

import type { TokenPrompt } from '../../answer/index.ts';
import { atField } from '../../common/index.ts';
import {
  type GivenPrompt,
  throwFaults,
  tokenIdFaults,
  type ValidTextCompletionRequest,
} from '../../protocol/index.ts';
import { NO_BYTES, type Tokenizer } from '../../tokenizer/index.ts';
import { fillInMiddle } from './fill-in-middle.ts';

const NONE = new Int32Array(0);

/** Encodes a prompt. Throws `INVALID_REQUEST` for ids outside the vocabulary. */
export async function encodePrompt(
  { path, content }: GivenPrompt,
  { suffix, addSpecial }: ValidTextCompletionRequest,
  tokenizer: Tokenizer,
): Promise<TokenPrompt> {
  if (typeof content !== 'string') {
    throwFaults(tokenIdFaults(path.split('.'), content, tokenizer.vocabSize));
    return { field: path, ids: Int32Array.from(content), added: NONE };
  }
  const added = await tokenizer.encode('', { addSpecial, parseSpecial: true });
  const ids = await atField(path, () =>
    suffix === null
      ? tokenizer.encode(content, { addSpecial, parseSpecial: true })
      : fillInMiddle(tokenizer, content, suffix, added),
  );
  return { field: path, ids, added };
}

/** What `echo` shows of a prompt. */
export type Echo = {
  readonly text: string;
  /** Of each token the bytes in the text: none of what the tokenizer has added. */
  readonly bytes: readonly Uint8Array[];
};

/** The text of a prompt as it was given, as far as it was not cut. */
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
