/** The opened libraries -> the release that runs, what this library assumes of it, and what is off because an assumption does not hold. */
import { loadAddon } from './addon.ts';
import { decoderVersion } from './decoder.ts';

/** The release of the engine that runs, and what this library relies on in it beyond its documented interface. */
export type EngineReport = {
  /** Version of llama.cpp, as its libraries report it. */
  readonly version: string;
  /** Folder of the libraries. */
  readonly folder: string;
  /** Version of the llama.cpp that the decoder of pictures and sounds is made of; null if it is not open. */
  readonly decoder: string | null;
  /** Names of the assumptions that were checked and hold. */
  readonly holds: readonly string[];
  /** Names of the assumptions that are checked by a first pass or a first use that has not taken place. */
  readonly unchecked: readonly string[];
  /** Assumptions that do not hold, and what is off, or different, without each. */
  readonly off: readonly {
    readonly assumption: string;
    /** The assumption, as a sentence. */
    readonly assumed: string;
    readonly problem: string;
    readonly without: string;
  }[];
};

/** Returns null if the libraries are not open. */
export function engineReport(): EngineReport | null {
  const state = loadAddon().engineState();
  if (!state) return null;
  const { version, folder, assumptions } = state;
  const named = (holds: boolean | null): string[] =>
    assumptions.filter((row) => row.holds === holds).map(({ name }) => name);
  return {
    version,
    folder,
    decoder: decoderVersion(),
    holds: named(true),
    unchecked: named(null),
    off: assumptions
      .filter(({ holds }) => holds === false)
      .map(({ name, text, problem, without }) => ({ assumption: name, assumed: text, problem, without })),
  };
}

/** Returns true if an assumption was checked and does not hold. */
export function isEngineBroken(name: string): boolean {
  return engineReport()?.off.some(({ assumption }) => assumption === name) === true;
}

/** Returns one report for several processes: what is off in one of them is off. Null if no process has opened the libraries. */
export function joinEngineReports(all: readonly (EngineReport | null)[]): EngineReport | null {
  const reports = all.filter((one) => one !== null);
  const [first] = reports;
  if (!first) return null;
  const off = reports.flatMap((one) => one.off);
  const isOff = (name: string): boolean => off.some(({ assumption }) => assumption === name);
  const holds = [...new Set(reports.flatMap((one) => one.holds))].filter((name) => !isOff(name));
  return {
    ...first,
    decoder: reports.find(({ decoder }) => decoder !== null)?.decoder ?? null,
    holds,
    unchecked: first.unchecked.filter((name) => !isOff(name) && !holds.includes(name)),
    off: off.filter(({ assumption }, i) => off.findIndex((one) => one.assumption === assumption) === i),
  };
}
