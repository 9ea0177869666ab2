/** Types of the addon's part for pictures and sounds, and the places of its decoder library. */

import type { NativeModel } from './engine.ts';
import type { Handle } from './grammar.ts';

/** A decoded picture or sound. */
export type NativeMedia = {
  readonly handle: Handle;
  readonly width: number;
  readonly height: number;
  readonly samples: number;
};

/** A run of a prompt: tokens, or the rows that one encoder pass computes for a medium. */
export type NativeChunk =
  | { readonly tokens: Int32Array; readonly count?: undefined }
  | {
      readonly tokens?: undefined;
      /** Index of the part of the prompt that it comes from. */
      readonly part: number;
      readonly count: number; // rows
      readonly advance: number; // positions
      readonly isNonCausal: boolean;
      readonly positions: Int32Array; // (4, count) relative to the first with M-RoPE, else empty
      readonly handle: Handle;
    };

/** A loaded projector. */
export type NativeProjector = {
  readonly sees: boolean;
  readonly hears: boolean;
  readonly sampleRate: number; // Hz
  readonly wholeRows: number; // of the largest non-causal chunk; 0: chunks may be split
  /** The text that the chat template writes for a picture. If absent it writes none, and the projector adds the surrounding tokens. */
  readonly placeholder?: string;
  /** Texts and handles of media -> tokens and chunks. */
  tokenize(parts: readonly (string | Handle)[], addSpecial: boolean): Promise<NativeChunk[]>;
  /** One at a time. `cancelled[0]` set to 1 ends it with `ABORTED`. `slices`: steps that waited ran between them. */
  encode(chunk: Handle, cancelled: Int32Array): Promise<{ handle: Handle; bytes: number; slices: number }>;
  close(): void;
};

/** The addon's functions. */
export type MediaAddon = {
  /** Returns the version of the llama.cpp that the decoder is made of. */
  openDecoder(path: string): Promise<string>;
  decodeMedia(options: {
    kind: 'image' | 'audio';
    bytes: Uint8Array; // nothing may write to them meanwhile
    pixels: number; // at most
    seconds: number; // at most
    timeMs: number; // at most
    sampleRate: number;
  }): Promise<NativeMedia>;
  /** Returns the size of a decoded picture, in pixels. */
  mediaSize(media: Handle): { width: number; height: number };
  /** Writes the pixels of a decoded picture, (height, width, 3), off the JavaScript thread. */
  copyPixels(media: Handle, rgb: Uint8Array): Promise<void>;
  /** Writes the samples of a decoded sound, off the JavaScript thread. */
  copySamples(media: Handle, samples: Float32Array): Promise<void>;
  openProjector(
    model: NativeModel,
    options: {
      path: string;
      useGpu: boolean;
      threads: number;
      minImageTokens: number | undefined;
      maxImageTokens: number | undefined;
    },
  ): Promise<NativeProjector>;
};
