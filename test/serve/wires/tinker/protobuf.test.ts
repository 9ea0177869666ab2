/** Bytes that the documentation of protocol buffers gives, and any others -> the fields of messages, or an error. */
import { describe, expect, it } from 'vitest';
import { OnpolicyError } from '../../../../src/errors.ts';
import {
  bytesField,
  doubleField,
  floatBytes,
  floatsIn,
  int32Bytes,
  int32sIn,
  int64Bytes,
  int64sIn,
  messageField,
  ProtobufMessage,
  varintField,
} from '../../../../src/serve/wires/tinker/protobuf.ts';
import { openData, readData } from '../../../../src/serve/wires/tinker/read-data.ts';
import { randomNumbers } from '../../../fakes/random-numbers.ts';

const read = (hex: string) => new ProtobufMessage(Buffer.from(hex.replaceAll(' ', ''), 'hex'));

describe('a message', () => {
  it('is read as its format documents it', () => {
    expect(read('08 96 01').integer(1)).toBe(150);
    expect(read('12 07 74 65 73 74 69 6e 67').text(2)).toBe('testing');
    expect(read('1a 03 08 96 01').message(3)!.integer(1)).toBe(150);
    expect(read('32 06 03 8e 02 9e a7 05').integers(6)).toEqual([3, 270, 86_942]);
    expect(read('30 03 30 8e 02 30 9e a7 05').integers(6)).toEqual([3, 270, 86_942]);
    expect(read('08 fe ff ff ff ff ff ff ff ff 01').integer(1)).toBe(-2);
    expect(read('08 ff ff ff ff ff ff ff 0f').integer(1)).toBe(Number.MAX_SAFE_INTEGER);
    expect(read('09 00 00 00 00 00 00 f4 3f').double(1)).toBe(1.25);
    expect(read('0d 00 00 80 3f').bytes(1)).toEqual(Buffer.from('0000803f', 'hex'));
    expect(read('08 01 08 02').integer(1)).toBe(2); // the last one counts
    expect([read('').integer(1), read('').text(1), read('').bytes(1), read('').messages(1)]).toEqual([
      0,
      '',
      null,
      [],
    ]);
  });

  it('is written so that it reads the same', () => {
    const numbers = [0, 1, 127, 128, 300, 2 ** 31, 2 ** 53 - 1];
    const written = Buffer.concat([
      ...numbers.map((value) => varintField(4, value)),
      bytesField(2, 'ä'),
      messageField(7, bytesField(1, 'key'), doubleField(2, -0.1)),
    ]);
    const message = new ProtobufMessage(written);
    expect(message.integers(4)).toEqual(numbers);
    expect(message.text(2)).toBe('ä');
    expect(message.entries(7).map(([key, entry]) => [key, entry.double(2)])).toEqual([['key', -0.1]]);
    expect(floatsIn(floatBytes([0.5, Number.NaN, -3]))).toEqual([0.5, Number.NaN, -3]);
    expect(int32sIn(int32Bytes([1, -2, 2 ** 31 - 1]))).toEqual([1, -2, 2 ** 31 - 1]);
    expect(int64sIn(int64Bytes([1, -2, 2 ** 53 - 1]))).toEqual([1, -2, 2 ** 53 - 1]);
    expect([floatsIn(Buffer.alloc(3)), int32sIn(Buffer.alloc(5)), int64sIn(Buffer.alloc(12))]).toEqual([
      null,
      null,
      null,
    ]);
  });

  it.each(['08', '0a 05 61', '0b', '00 01', '09 00', '08 ff ff ff ff ff ff ff ff ff ff 01', '0d 00'])(
    'is no message: %s',
    (hex) => {
      expect(() => read(hex)).toThrow('not a message of protocol buffers');
    },
  );

  it('of any bytes fails with an error that names what is wrong', () => {
    const random = randomNumbers(20_261_130);
    for (let round = 0; round < 3000; round++) {
      const bytes = Uint8Array.from({ length: Math.floor(random() * 60) }, () => Math.floor(random() * 256));
      // Half of them are data of a loss that exists, so that they are read further.
      const body =
        round % 2 === 0 ? bytes : Buffer.concat([bytesField(4, 'cross_entropy'), bytesField(3, bytes)]);
      try {
        readData(openData(body).message, 1000);
      } catch (error) {
        expect(error).toBeInstanceOf(OnpolicyError);
        expect((error as OnpolicyError).status).toBeLessThan(500);
      }
    }
  });

  it('has a limited number of fields, also in messages within it', () => {
    const many = Buffer.alloc(1_100_000, Buffer.from('0800', 'hex'));
    expect(() => new ProtobufMessage(many)).not.toThrow();
    const more = Buffer.concat([messageField(1, many), messageField(1, many)]);
    expect(() => new ProtobufMessage(more).messages(1)).toThrow('more than 1000000 fields');
  });
});

describe('data', () => {
  const chunk = (tokens: readonly number[]) =>
    messageField(1, messageField(1, bytesField(1, int32Bytes(tokens))));
  const input = (name: string, ...tensor: Uint8Array[]) =>
    messageField(2, bytesField(1, name), messageField(2, ...tensor));
  const datum = (...fields: Uint8Array[]) =>
    readData(
      openData(Buffer.concat([bytesField(4, 'cross_entropy'), messageField(3, chunk([5, 9]), ...fields)]))
        .message,
      1000,
    ).data[0]!;
  const sparse = (values: readonly number[], starts: readonly number[], columns: readonly number[]) =>
    messageField(
      2,
      bytesField(1, floatBytes(values)),
      bytesField(2, int64Bytes(starts)),
      bytesField(3, int64Bytes(columns)),
    );
  /** A size of -1. */
  const minusOne = Buffer.from('20ffffffffffffffffff01', 'hex');
  const shape = (...sizes: number[]) => sizes.map((size) => varintField(4, size));

  it('have several targets a position, of which those that are 0 may be left out', () => {
    const { model_input, loss_fn_inputs } = datum(
      input('weights', sparse([0.5, 0.25, 0.25], [0, 1, 3], [2, 0, 1]), varintField(3, 1), ...shape(2, 3)),
      input(
        'target_tokens',
        bytesField(1, int64Bytes([1, 2, 3, 4, 5, 6])),
        varintField(3, 2),
        ...shape(2, 3),
      ),
    );
    expect(model_input.chunks).toEqual([{ tokens: [5, 9] }]);
    expect(loss_fn_inputs.weights).toEqual({ data: [0, 0, 0.5, 0.25, 0.25, 0], shape: [2, 3] });
    expect(loss_fn_inputs.target_tokens).toEqual({ data: [1, 2, 3, 4, 5, 6], shape: [2, 3] });
  });

  it.each<[string, Uint8Array[], RegExp]>([
    [
      'too few starts',
      [sparse([1], [0, 1], [0]), varintField(3, 1), ...shape(2, 3)],
      /a matrix of compressed/,
    ],
    [
      'starts that fall',
      [sparse([1], [0, 2, 1], [0]), varintField(3, 1), ...shape(2, 3)],
      /a matrix of compressed/,
    ],
    [
      'a column outside',
      [sparse([1], [0, 1, 1], [3]), varintField(3, 1), ...shape(2, 3)],
      /a matrix of compressed/,
    ],
    [
      'fewer columns than none',
      [sparse([], [0, 0, 0], []), varintField(3, 1), varintField(4, 2), minusOne],
      /a matrix of compressed/,
    ],
    ['no shape', [sparse([1], [0, 1, 1], [0]), varintField(3, 1)], /a matrix of compressed/],
    [
      'a large shape',
      [sparse([], [0, 0, 0], []), varintField(3, 1), ...shape(2, 2 ** 40)],
      /too many numbers/,
    ],
    [
      'an unknown dtype',
      [bytesField(1, floatBytes([1, 1])), varintField(3, 4)],
      /dtype: expected float32 or int64/,
    ],
    [
      'half a number',
      [bytesField(1, Buffer.alloc(6)), varintField(3, 1)],
      /weights: expected numbers of its dtype/,
    ],
    [
      'no number',
      [bytesField(1, floatBytes([1, Number.NaN])), varintField(3, 1)],
      /weights: expected finite numbers/,
    ],
  ])('are refused with %s', (_, tensor, message) => {
    expect(() => datum(input('weights', ...tensor))).toThrow(message);
  });

  it('are refused with images and with inputs that a loss does not have', () => {
    expect(() => datum(input('mask', bytesField(1, floatBytes([1, 1])), varintField(3, 1)))).toThrow(
      'data.0.loss_fn_inputs.mask: expected no such input of cross_entropy, which has target_tokens, weights',
    );
    expect(() => datum(messageField(1, messageField(2, bytesField(2, 'png'))))).toThrow(
      'data.0.model_input.chunks.1: expected tokens: training runs read no images and sounds',
    );
    expect(() => readData(openData(bytesField(4, 'grpo')).message, 1000)).toThrow(
      /loss_fn: expected one of cross_entropy, importance_sampling, ppo, cispo, dro, got "grpo"/,
    );
  });

  it('have the settings of their loss, of which a bound below is none by default', () => {
    const config = (loss: string, ...fields: Uint8Array[]) =>
      readData(openData(Buffer.concat([bytesField(4, loss), ...fields])).message, 1000).loss_fn_config;
    const high = messageField(5, bytesField(1, 'clip_high_threshold'), doubleField(2, 5));
    expect(config('cispo')).toEqual({ clip_low_threshold: 0, clip_high_threshold: 4 });
    expect(config('cispo', high)).toEqual({ clip_low_threshold: 0, clip_high_threshold: 5 });
    expect(config('ppo')).toEqual({});
  });
});
