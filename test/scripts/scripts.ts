/** The scripts that make the embedded model are plain JavaScript: what tests use of them, typed. */
import type { PackedRow } from '../../src/rl/trainer.ts';

export type Random = {
  uniform(): number;
  integer(low: number, high: number): number;
  pick<T>(list: readonly T[]): T;
};
export type Message = { readonly role: 'user' | 'assistant' | 'tool'; readonly content: string };
export type Dialogue = {
  readonly system?: string;
  readonly tools: readonly string[];
  readonly messages: readonly Message[];
};
export type Question = { readonly question: string; readonly answer: string };
export type Encode = (text: string) => Promise<ArrayLike<number>>;
export type TrainingRow = { readonly row: PackedRow; readonly targetWeights: Float32Array };

type Scripts = {
  'random.mjs': { createRandom(seed: number): Random };
  'dialogues.mjs': { drawDialogue(random: Random, isHeldOut: (question: string) => boolean): Dialogue };
  'corpus.mjs': {
    isHeldOut(question: string): boolean;
    examination(random: Random, count: number): Map<string, readonly Question[]>;
    renderDialogue(dialogue: Dialogue): readonly { readonly text: string; readonly weight: number }[];
    drawRows(random: Random, encode: Encode, rowSize: number): AsyncGenerator<TrainingRow, never>;
  };
  'exam.mjs': {
    renderTable(former: Results, next: Results): string;
    isAtLeastAsGood(former: Results, next: Results): boolean;
  };
  'train.mjs': { learningRate(highest: number, step: number, progress: number): number };
};
export type Results = ReadonlyMap<string, { readonly right: number; readonly asked: number }>;

/** Loads one file of scripts/model. */
export async function modelScript<Name extends keyof Scripts>(name: Name): Promise<Scripts[Name]> {
  return import(new URL(`../../scripts/model/${name}`, import.meta.url).href);
}
