/** A model reference -> the card for lists of models. Reads headers only. */
import fs from 'node:fs';
import type { ModelOptions } from '../protocol/index.ts';
import type { ModelCard } from '../protocol/service/index.ts';
import { detectReasoning } from '../template/reasoning/index.ts';
import { detectToolFormat } from '../template/tool-calls/index.ts';
import { contextSizeOf } from './context-limits.ts';
import { decisionHeader, isLabelType } from './decision-header.ts';
import { findProjector, resolveFile } from './model-files.ts';
import { type FormatOptions, formatOf } from './model-format.ts';
import { loadKey, type NamedModels } from './named-models.ts';

/** The cards of one runtime. A card is read again when its file has changed. */
export class ModelCards {
  readonly #names: NamedModels;
  readonly #serving: FormatOptions;
  readonly #known = new Map<string, { readonly mtimeMs: number; readonly card: Promise<ModelCard> }>(); // by file and options

  constructor(names: NamedModels, serving: FormatOptions) {
    this.#names = names;
    this.#serving = { ...serving, hub: { ...serving.hub, offline: true }, onProgress: null };
  }

  /** Returns the card of a model, loaded or not. Returns null if its files are missing or damaged. Downloads nothing. */
  async of(reference: string | null): Promise<ModelCard | null> {
    const options = this.#names.find(reference);
    const { signal } = new AbortController();
    try {
      const file = await resolveFile(options.path, { ...this.#serving, signal });
      const { mtimeMs } = fs.statSync(file);
      const key = loadKey(file, options);
      let known = this.#known.get(key);
      if (known?.mtimeMs !== mtimeMs) {
        known = { mtimeMs, card: readCard(file, options, this.#serving) };
        this.#known.set(key, known);
      }
      return await known.card;
    } catch {
      return null;
    }
  }
}

/** Reads a card. Fails as loading the model does. */
async function readCard(file: string, options: ModelOptions, serving: FormatOptions): Promise<ModelCard> {
  const facts = await formatOf(file, serving.formats).describe(file, options, serving);
  const { chatTemplate, vectors, contextLength, ...card } = facts;
  const projector = await findProjector(file, options, serving, new AbortController().signal).catch(
    () => null,
  );
  return {
    ...card,
    path: file,
    modifiedMs: fs.statSync(file).mtimeMs,
    contextSize: vectors?.contextSize ?? contextSizeOf(options, serving, contextLength),
    chatTemplate,
    capabilities: vectors
      ? [vectors.hasHead ? 'rerank' : 'embedding']
      : isLabelType(decisionHeader(card.metadata).type ?? '')
        ? ['decision']
        : [
            'completion',
            ...(detectToolFormat(chatTemplate) === 'none' ? [] : (['tools'] as const)),
            ...(detectReasoning(chatTemplate) ? (['thinking'] as const) : []),
            ...(projector === null ? [] : (['vision'] as const)),
          ],
  };
}
