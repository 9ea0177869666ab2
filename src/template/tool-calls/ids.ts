/** A format -> ids of calls in the form of its family. */
import type { ToolCallIdFactory } from './call-sink.ts';
import type { ToolFormat } from './formats.ts';

const HEX = '0123456789abcdef';
const ALPHANUMERIC = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/**
 * Makes ids: `functions.NAME:INDEX` for `kimi_k2`, nine letters and digits for Mistral, `chatcmpl-tool-` and 32 hex digits
 * otherwise. An id that the model wrote is used if it has the family's form.
 * @param randomInt returns an integer from 0 to below its argument, for example `randomInt` of `node:crypto`
 */
export function createToolCallIds(
  format: ToolFormat,
  randomInt: (below: number) => number,
): ToolCallIdFactory {
  const draw = (alphabet: string, length: number): string =>
    Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('');
  switch (format) {
    case 'kimi_k2':
      return ({ name, index, written }) =>
        written !== null && /^functions\..+:\d+$/.test(written) ? written : `functions.${name}:${index}`;
    case 'mistral':
    case 'mistral_args':
      return ({ written }) =>
        written !== null && /^[a-zA-Z0-9]{9}$/.test(written) ? written : draw(ALPHANUMERIC, 9);
    default:
      return () => `chatcmpl-tool-${draw(HEX, 32)}`;
  }
}
