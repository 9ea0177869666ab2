/** The headers of a GGUF LoRA file and of its base model -> nothing, or an error about a mismatch, before the engine reads the file. */

import { checkMatrix, type GgufHeader, showShape } from '../../engine/gguf/index.ts';
import { OnpolicyError } from '../../errors.ts';
import type { DeltaNetHeads } from './row-order.ts';

export type BaseModel = {
  readonly architecture: string;
  /** Size of one key vector of an attention head. */
  readonly headSize: number;
  /** Heads of its gated delta nets. Null if it has none. */
  readonly deltaNet: DeltaNetHeads | null;
  /** Shapes of the weights by name: the fastest dimension first. */
  readonly tensors: Readonly<Record<string, readonly number[]>>;
};

const FACTOR = /^(.+)\.lora_([ab])$/;
/** Token embeddings are looked up, not multiplied: their factors are transposed. */
const LOOKED_UP = 'token_embd.weight';
/** Key of an adapter that takes effect only after certain tokens of the prompt. */
const ACTIVATED = 'adapter.alora.invocation_tokens';

type Factors = { a?: readonly number[]; b?: readonly number[] };

/**
 * Checks a LoRA file.
 * @throws OnpolicyError `MODEL_INVALID` for a file that does not belong to this model, `UNSUPPORTED` for another kind of adapter
 */
export function checkAdapter(header: GgufHeader, base: BaseModel): void {
  const text = (key: string): string => header.text(key) ?? '';
  if (text('general.type') !== 'adapter')
    header.fail(`expected an adapter, got a file of the type ${text('general.type') || 'model'}`);
  if (text('adapter.type') !== 'lora')
    throw new OnpolicyError(
      'UNSUPPORTED',
      `adapters of the type ${text('adapter.type')} are not served: only lora is`,
    );
  if (header.values.has(ACTIVATED))
    throw new OnpolicyError(
      'UNSUPPORTED',
      'an activated LoRA (aLoRA) is not served: only those that work from the first token',
    );
  header.number('split.count', { type: 'u16', max: 1 }); // programs that merge split files read it
  const architecture = text('general.architecture');
  if (architecture !== base.architecture)
    header.fail(`expected an adapter of a ${base.architecture} model, got one of a ${architecture} model`);
  const alpha = header.number('adapter.lora.alpha', { type: 'f32' }) ?? 0;
  if (!Number.isFinite(alpha)) header.refuse('adapter.lora.alpha', 'a finite number', alpha);
  const found = new Map<string, Factors>();
  for (const [name, { shape }] of header.tensors) {
    const [, module, factor] = FACTOR.exec(name) ?? [];
    if (!module) return header.fail(`the tensor ${name} is not a factor of a LoRA`);
    checkMatrix(header, name);
    found.set(module, { ...found.get(module), [factor as 'a' | 'b']: shape });
  }
  for (const [module, factors] of found) checkFactors(header, module, factors, base);
}

function checkFactors(header: GgufHeader, module: string, { a, b }: Factors, { tensors }: BaseModel): void {
  if (!a || !b) return header.fail(`${module} has no factor lora_${a ? 'b' : 'a'}`);
  const weight = Object.hasOwn(tensors, module) ? tensors[module] : undefined;
  if (!weight) return header.fail(`the model has no weight ${module}`);
  if (module === LOOKED_UP && !Object.hasOwn(tensors, 'output.weight'))
    throw new OnpolicyError(
      'UNSUPPORTED',
      `${header.file}: ${module}: an adapter of embeddings is not served where they are the output matrix, too`,
    );
  const [width = 0, rows = 0, ...experts] = weight;
  const rank = module === LOOKED_UP ? a[0]! : a[1]!;
  const isLookedUp = module === LOOKED_UP;
  const wanted = {
    lora_a: isLookedUp ? [rank, rows, ...experts] : [width, rank, ...experts],
    lora_b: isLookedUp ? [rank, width, ...experts] : [rank, rows, ...experts],
  };
  for (const [factor, shape] of Object.entries({ lora_a: a, lora_b: b })) {
    const expected = wanted[factor as keyof typeof wanted];
    if (shape.some((size, i) => size !== (expected[i] ?? 1)))
      header.fail(
        `${module}.${factor}: expected the shape ${showShape(expected)} of rank ${rank} beside a weight of ${showShape(weight)}, got ${showShape(shape)}`,
      );
  }
}
