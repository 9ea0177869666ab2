// The tokenizer part of a GGUF file -> tokenizer.json, tokenizer_config.json with the chat template.
import fs from 'node:fs';
import path from 'node:path';

/** Kinds of tokens in the file. */
const CONTROL = 3;
const USER_DEFINED = 4;
const UNUSED = 5;

/** The pre-tokenizer of each name that a file may give. */
const PATTERNS = {
  qwen2:
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
};

/** Writes both files. Unused ids get no token. */
export function writeTokenizer(folder, { ggml, chat_template: template }) {
  const pattern = PATTERNS[ggml.pre];
  if (ggml.model !== 'gpt2' || !pattern)
    throw new Error(
      `tokenizer: expected one of ${Object.keys(PATTERNS).join(', ')}, got ${ggml.model} ${ggml.pre}`,
    );
  const { tokens } = ggml;
  const added = tokens.flatMap((content, id) => {
    const type = ggml.token_type[id];
    if (type !== CONTROL && type !== USER_DEFINED) return [];
    const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false };
    return [{ id, content, ...flags, special: type === CONTROL }];
  });
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false };
  const tokenizer = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: added,
    normalizer: null,
    pre_tokenizer: {
      type: 'Sequence',
      pretokenizers: [
        { type: 'Split', pattern: { Regex: pattern }, behavior: 'Isolated', invert: false },
        byteLevel,
      ],
    },
    post_processor: null,
    decoder: byteLevel,
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: '',
      end_of_word_suffix: '',
      fuse_unk: false,
      byte_fallback: false,
      vocab: Object.fromEntries(
        tokens.flatMap((token, id) => (ggml.token_type[id] === UNUSED ? [] : [[token, id]])),
      ),
      merges: ggml.merges,
    },
  };
  const write = (name, value) =>
    fs.writeFileSync(path.join(folder, name), `${JSON.stringify(value, null, 1)}\n`);
  write('tokenizer.json', tokenizer);
  write('tokenizer_config.json', {
    tokenizer_class: 'PreTrainedTokenizerFast',
    add_bos_token: ggml.add_bos_token ?? false,
    bos_token: tokens[ggml.bos_token_id],
    eos_token: tokens[ggml.eos_token_id],
    pad_token: tokens[ggml.padding_token_id],
    clean_up_tokenization_spaces: false,
    chat_template: template,
  });
}
