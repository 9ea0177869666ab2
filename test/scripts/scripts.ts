/** The scripts that make the shipped models are plain JavaScript: what tests use of them, typed. */
import type { PackedRow } from '../../src/protocol/index.ts';

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

/** A scene of scripts/make/seeing. */
export type Scene = {
  readonly background: string;
  readonly objects: readonly { shape: string; color: string; place: string; x: number; y: number }[];
};

type SeeingScripts = {
  'scenes.mjs': {
    readonly COLORS: Readonly<Record<string, readonly number[]>>;
    readonly PATCH: number;
    readonly PLACES: readonly string[];
    readonly SHAPES: readonly string[];
    readonly SIDE: number;
    drawPixels(scene: Scene, random: Random): Uint8Array;
    drawScene(random: Random, count?: number): Scene;
    isHeldOut(scene: Scene): boolean;
    patchLabels(scene: Scene): Uint8Array;
  };
  'png.mjs': { encodePng(pixels: Uint8Array, width: number, height: number): Buffer };
  'questions.mjs': {
    readonly SKILLS: Readonly<Record<string, (scene: Scene) => Question>>;
  };
  'rows.mjs': {
    readonly PICTURE_TOKENS: number;
    readonly ROW_TOKENS: number;
    drawRows(random: Random, encode: Encode): AsyncGenerator<Buffer, never>;
  };
};

type OnnxScripts = {
  'vision.mjs': {
    readonly EYES: {
      readonly side: number;
      readonly patch: number;
      readonly channels: number;
      readonly rows: number;
    };
    readonly PIXELS: { readonly image_mean: readonly number[]; readonly image_std: readonly number[] };
    eyeWeights(width: number): Readonly<Record<'kernel' | 'places' | 'head', Float32Array>>;
  };
};

/** Loads one file of scripts/make/onnx. */
export async function onnxScript<Name extends keyof OnnxScripts>(name: Name): Promise<OnnxScripts[Name]> {
  return import(new URL(`../../scripts/make/onnx/${name}`, import.meta.url).href);
}

/** Loads one file of scripts/make/seeing. */
export async function seeingScript<Name extends keyof SeeingScripts>(
  name: Name,
): Promise<SeeingScripts[Name]> {
  return import(new URL(`../../scripts/make/seeing/${name}`, import.meta.url).href);
}

/** Loads one file of scripts/make/model. */
export async function modelScript<Name extends keyof Scripts>(name: Name): Promise<Scripts[Name]> {
  return import(new URL(`../../scripts/make/model/${name}`, import.meta.url).href);
}
