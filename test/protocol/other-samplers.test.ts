/** Sampling fields of llama.cpp's server: refused by name when they would do something. */
import { describe, expect, it } from 'vitest';
import { checkChatRequest, validateChatRequest } from '../../src/protocol/index.ts';

const messages = [{ role: 'user', content: 'a' }];

describe('samplers that are not served', () => {
  it.each<[string, unknown, unknown, string]>([
    ['typical_p', 0.9, 1, 'top_p or min_p'],
    ['xtc_probability', 0.5, 0, 'a higher temperature with min_p'],
    ['dry_multiplier', 0.8, 0, 'repetition_penalty, frequency_penalty or bad_words'],
    ['dynatemp_range', 0.5, 0, 'temperature with min_p'],
    ['mirostat', 2, 0, 'top_p or min_p'],
  ])('%s is refused with what to use instead; what turns it off is not, over HTTP', (name, on, off, use) => {
    const message = `${name}: not a field of a request; use ${use} instead`;
    expect(() => validateChatRequest({ messages, [name]: on })).toThrow(message);
    expect(() => checkChatRequest({ messages, [name]: on }, { wire: true, dropUnknown: true })).toThrow(
      message,
    );
    const ignored: string[] = [];
    const onDropped = (path: string): void => void ignored.push(path);
    checkChatRequest({ messages, [name]: off }, { wire: true, dropUnknown: true, onDropped });
    expect(ignored).toEqual([name]);
  });

  it.each(['dry_base', 'mirostat_tau', 'xtc_threshold', 'dynatemp_exponent'])(
    '%s alone does nothing',
    (name) => {
      expect(() => validateChatRequest({ messages, [name]: 1 })).toThrow(/use .* instead/);
      checkChatRequest({ messages, [name]: 1 }, { wire: true, dropUnknown: true });
    },
  );
});
