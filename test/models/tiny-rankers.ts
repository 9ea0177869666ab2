/** Small random models that rank: cross encoders, and Qwen3-Reranker's kind with and without a head of its own. */
import path from 'node:path';
import { type Metadata, writeTinyModel } from '../rl/tiny-model.ts';
import { type TinyBert, writeTinyBert } from './tiny-bert.ts';

/** Qwen3-Reranker's prompt, as its model card has it. */
export const PROMPT =
  '<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n<Query>: {query}\n<Document>: {document}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n';

/** GPT-2's letters for bytes. */
const BYTES = Array.from({ length: 256 }, (_, byte) => {
  const isShown = (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  return isShown ? byte : null;
});
let hidden = 0;
const LETTERS = BYTES.map((byte) => String.fromCodePoint(byte ?? 256 + hidden++));
const TOKENS = [...LETTERS, 'ye', 'yes', 'no', '<|endoftext|>', '<|im_start|>', '<|im_end|>'];
const SPECIALS = 3;
/** Ids of the tokens that answer. */
export const [YES, NO]: readonly [yes: number, no: number] = [TOKENS.indexOf('yes'), TOKENS.indexOf('no')];

const TOKENIZER: Metadata = [
  ['tokenizer.ggml.model', 'gpt2'],
  ['tokenizer.ggml.pre', 'qwen2'],
  ['tokenizer.ggml.tokens', TOKENS],
  ['tokenizer.ggml.token_type', Int32Array.from(TOKENS, (_, i) => (i < TOKENS.length - SPECIALS ? 1 : 3))],
  ['tokenizer.ggml.merges', ['y e', 'ye s', 'n o']],
  ['tokenizer.ggml.eos_token_id', TOKENS.length - 1],
  ['tokenizer.ggml.bos_token_id', TOKENS.length - SPECIALS],
];

/** Files of the models by name, and the weights of the cross encoder and of the one with labels. */
export type TinyRankers = {
  readonly files: Readonly<Record<'cross' | 'labels' | 'qwen' | 'plain' | 'vectors', string>>;
  readonly cross: TinyBert;
  readonly labels: TinyBert;
};

/** Writes them into a folder. */
export async function writeTinyRankers(folder: string): Promise<TinyRankers> {
  const file = (name: string): string => path.join(folder, `${name}.gguf`);
  const files = {
    cross: file('cross'),
    labels: file('labels'),
    qwen: file('qwen'),
    plain: file('plain'),
    vectors: file('vectors'),
  };
  const cross = writeTinyBert(files.cross, 4);
  const labels = writeTinyBert(files.labels, 4, ['good', 'bad', 'odd']);
  writeTinyBert(files.vectors, 1);
  const shape = {
    architecture: 'qwen3',
    type: 'f32',
    vocabularySize: TOKENS.length,
    tokenizer: TOKENIZER,
  } as const;
  await writeTinyModel(files.plain, shape);
  await writeTinyModel(files.qwen, {
    ...shape,
    pooling: 4,
    headRows: [YES, NO],
    metadata: [
      ['qwen3.classifier.output_labels', ['yes', 'no']],
      ['tokenizer.chat_template.rerank', PROMPT],
    ],
  });
  return { files, cross, labels };
}
