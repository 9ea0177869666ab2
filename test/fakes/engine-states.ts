/**
 * Tokens of steps -> where the engine keeps the states of recurrent sequences. A step becomes passes over sequences with as many tokens;
 * a pass puts the cells of its sequences side by side and swaps others out of their way. A cell that is moved takes its newest state
 * along, and leaves the older ones of its last tokens behind.
 */

/** Stands for the content of a state: no two are the same. */
type State = number;
type Cell = { owners: Set<number>; states: State[] };

const NOTHING: State = 0;

export class EngineStates {
  readonly #kept: number; // older states of a cell
  readonly #isUnified: boolean;
  readonly #passTokens: number;
  readonly #cells: Cell[];
  readonly #expected: State[][]; // (slots) states after each of its last tokens
  readonly #cut: number[]; // (slots) tokens that were taken back since its last pass
  #made: State = NOTHING;

  constructor(slots: number, kept: number, isUnified: boolean, passTokens: number) {
    this.#kept = kept;
    this.#isUnified = isUnified;
    this.#passTokens = passTokens;
    this.#cells = Array.from({ length: slots }, () => ({
      owners: new Set(),
      states: Array(kept + 1).fill(NOTHING),
    }));
    this.#expected = Array.from({ length: slots }, () => []);
    this.#cut = Array(slots).fill(0);
  }

  /** Computes tokens of these slots, those of a slot side by side. */
  step(slots: readonly number[]): void {
    const left = new Map<number, number>();
    for (const slot of slots) left.set(slot, (left.get(slot) ?? 0) + 1);
    while (left.size > 0) {
      const { pass, tokens } = this.#nextPass(left);
      this.#compute(pass, tokens);
      for (const slot of pass) {
        left.set(slot, left.get(slot)! - tokens);
        if (left.get(slot) === 0) left.delete(slot);
      }
    }
  }

  #nextPass(left: ReadonlyMap<number, number>): { pass: number[]; tokens: number } {
    const pass: number[] = [];
    for (const slot of left.keys())
      if (this.#isUnified || pass.length === 0 || slot === pass.at(-1)! + 1) pass.push(slot);
    const tokens = Math.min(
      ...pass.map((slot) => left.get(slot)!),
      Math.max(1, Math.floor(this.#passTokens / pass.length)),
    );
    // The last tokens of a sequence are not split, so that all its older states are of one pass.
    const isSplit = (slot: number): boolean =>
      left.get(slot)! > tokens && left.get(slot)! - tokens <= this.#kept;
    const end = pass.findIndex(isSplit);
    if (end > 0) return { pass: pass.slice(0, end), tokens };
    if (end < 0) return { pass, tokens };
    const all = left.get(pass[0]!)!;
    return { pass: [pass[0]!], tokens: all <= this.#passTokens ? all : all - this.#kept - 1 };
  }

  #compute(pass: readonly number[], tokens: number): void {
    for (const slot of pass) this.#own(slot);
    const first = Math.min(...pass.map((slot) => this.#at(slot)));
    // Cells change places with what is in them; older states are no part of that.
    for (const [i, slot] of pass.entries()) {
      const [to, from] = [this.#cells[first + i]!, this.#cells[this.#at(slot)]!];
      if (to === from) continue;
      const [a, b] = [this.#current(to), this.#current(from)];
      [to.owners, from.owners] = [from.owners, to.owners];
      for (const owner of [...to.owners, ...from.owners]) this.#cut[owner] = 0;
      [to.states[0], from.states[0]] = [b, a];
    }
    for (const slot of pass) {
      const cell = this.#cells[this.#at(slot)]!;
      const expected = this.#expected[slot]!;
      if (this.#current(cell) !== (expected.at(-1) ?? NOTHING))
        throw new Error(`slot ${slot} continues from a state that is not its own`);
      for (let i = 0; i < tokens; i++) expected.push(++this.#made);
      for (let i = 0; i < Math.min(tokens, this.#kept + 1); i++) cell.states[i] = expected.at(-1 - i)!;
      this.#cut[slot] = 0;
    }
  }

  #at(slot: number): number {
    return this.#cells.findIndex(({ owners }) => owners.has(slot));
  }

  /** The state that its owner continues from. */
  #current({ owners, states }: Cell): State {
    const [owner] = owners;
    return states[owner === undefined ? 0 : this.#cut[owner]!]!;
  }

  /** Gives a slot a cell that it does not share, with the state that it had. */
  #own(slot: number): Cell {
    const old = this.#cells[this.#at(slot)];
    if (old?.owners.size === 1) return old;
    const cell = this.#cells.find(({ owners }) => owners.size === 0)!;
    cell.states[0] = old ? this.#current(old) : NOTHING;
    old?.owners.delete(slot);
    cell.owners = new Set([slot]);
    return cell;
  }

  cut(slot: number, tokens: number): void {
    if (tokens <= 0) return;
    if (this.#cut[slot]! > 0 || tokens > this.#kept)
      throw new Error(`slot ${slot} cannot be cut by ${tokens}`);
    this.#cut[slot] = tokens;
    this.#expected[slot]!.length -= tokens;
  }

  copy(from: number, to: number): void {
    this.free(to);
    this.#expected[to] = [...this.#expected[from]!];
    const cell = this.#cells[this.#at(from)];
    if (!cell) return;
    if (this.#cut[from]! === 0) cell.owners.add(to);
    else this.load(to); // a copy of the state itself
  }

  free(slot: number): void {
    for (const { owners } of this.#cells) owners.delete(slot);
    this.#expected[slot] = [];
    this.#cut[slot] = 0;
  }

  /** A state from elsewhere takes the place of the slot's. */
  load(slot: number): void {
    this.free(slot);
    this.#expected[slot] = [++this.#made];
    this.#own(slot).states[0] = this.#made;
  }
}
