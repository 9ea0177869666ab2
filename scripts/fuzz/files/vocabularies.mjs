// The kind of a tokenizer -> a small vocabulary of it.
import { flag, floats, list, text, texts, u32, words } from './values.mjs';

/** Bytes as the letters that byte-level vocabularies write them with. */
const BYTE_LETTERS = (() => {
  const plain = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  let further = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(plain(byte) ? byte : further++));
})();

/** Small vocabularies by the kind of their tokenizer: metadata below `tokenizer.ggml`. */
export const VOCABULARIES = {
  bpe() {
    const merges = ['h e', 'l l', 'he ll', 'Ġ t', 'Ġt he'];
    const tokens = [...BYTE_LETTERS, ...merges.map((pair) => pair.replace(' ', '')), '<s>', '</s>', '<pad>'];
    const plain = tokens.length - 3;
    return {
      model: text('gpt2'),
      pre: text('qwen2'),
      tokens: texts(tokens),
      token_type: list(
        5,
        tokens.map((_, id) => words([id < plain ? 1 : 3])),
      ),
      merges: texts(merges),
      bos_token_id: u32(plain),
      eos_token_id: u32(plain + 1),
      padding_token_id: u32(plain + 2),
      add_bos_token: flag(false),
    };
  },
  spm() {
    const bytes = Array.from(
      { length: 256 },
      (_, byte) => `<0x${byte.toString(16).padStart(2, '0').toUpperCase()}>`,
    );
    const tokens = [
      '<unk>',
      '<s>',
      '</s>',
      ...bytes,
      '▁',
      ...'abcdefghijklmnopqrstuvwxyz',
      '▁t',
      'he',
      '▁the',
      'll',
      '<end>',
    ];
    const types = tokens.map((_, id) => (id === 0 ? 2 : id < 3 ? 3 : id < 259 ? 6 : 1));
    types[types.length - 1] = 4;
    return {
      model: text('llama'),
      pre: text('default'),
      tokens: texts(tokens),
      scores: list(
        6,
        tokens.map((_, id) => floats([-id])),
      ),
      token_type: list(
        5,
        types.map((type) => words([type])),
      ),
      bos_token_id: u32(1),
      eos_token_id: u32(2),
      unknown_token_id: u32(0),
      add_bos_token: flag(true),
      add_eos_token: flag(false),
      add_space_prefix: flag(true),
    };
  },
  wpm() {
    const letters = [...'abcdefghijklmnopqrstuvwxyz'];
    const tokens = [
      '[PAD]',
      '[UNK]',
      '[CLS]',
      '[SEP]',
      '[MASK]',
      ...letters.map((letter) => `▁${letter}`),
      ...letters,
    ];
    return {
      model: text('bert'),
      pre: text('jina-v2-en'),
      tokens: texts(tokens),
      token_type: list(
        5,
        tokens.map((_, id) => words([id < 5 ? 3 : 1])),
      ),
      token_type_count: u32(2),
      padding_token_id: u32(0),
      unknown_token_id: u32(1),
      bos_token_id: u32(2),
      cls_token_id: u32(2),
      seperator_token_id: u32(3),
      mask_token_id: u32(4),
    };
  },
  unigram() {
    const tokens = [
      '<pad>',
      '</s>',
      '<unk>',
      '▁',
      ...'abcdefghijklmnopqrstuvwxyz',
      '▁t',
      'he',
      '▁the',
      '<extra_id_0>',
    ];
    return {
      model: text('t5'),
      pre: text('default'),
      tokens: texts(tokens),
      scores: list(
        6,
        tokens.map((_, id) => floats([-id / 4])),
      ),
      token_type: list(
        5,
        tokens.map((_, id) => words([id === 2 ? 2 : id < 2 ? 3 : id === tokens.length - 1 ? 4 : 1])),
      ),
      eos_token_id: u32(1),
      padding_token_id: u32(0),
      unknown_token_id: u32(2),
      add_bos_token: flag(false),
      add_eos_token: flag(true),
      add_space_prefix: flag(true),
    };
  },
};
