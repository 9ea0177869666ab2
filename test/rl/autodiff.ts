/** Expressions of numbers -> their values and derivatives by automatic differentiation in reverse, float64: what formulas are checked against. */

/** A number, and how it depends on others. */
export class Var {
  gradient = 0;
  readonly value: number;
  readonly #from: readonly (readonly [Var, number])[];

  /** `from`: what it was computed from, each with its derivative. */
  constructor(value: number, from: readonly (readonly [Var, number])[] = []) {
    this.value = value;
    this.#from = from;
  }

  plus(other: Var | number): Var {
    const b = toVar(other);
    return new Var(this.value + b.value, [
      [this, 1],
      [b, 1],
    ]);
  }

  minus(other: Var | number): Var {
    return this.plus(toVar(other).times(-1));
  }

  times(other: Var | number): Var {
    const b = toVar(other);
    // A factor of 0 counts nothing, whatever the other is.
    const value = this.value === 0 || b.value === 0 ? 0 : this.value * b.value;
    return new Var(value, [
      [this, b.value],
      [b, this.value],
    ]);
  }

  exp(): Var {
    const value = Math.exp(this.value);
    return new Var(value, [[this, value]]);
  }

  sigmoid(): Var {
    const value = 1 / (1 + Math.exp(-this.value));
    return new Var(value, [[this, value * (1 - value)]]);
  }

  min(other: Var | number): Var {
    const b = toVar(other);
    return b.value < this.value ? b : this;
  }

  max(other: Var | number): Var {
    const b = toVar(other);
    return b.value > this.value ? b : this;
  }

  clamp(low: number, high: number): Var {
    return this.max(low).min(high);
  }

  /** The same number, held constant. */
  detach(): Var {
    return new Var(this.value);
  }

  /** Adds to `gradient` of everything that this was computed from. */
  backward(): void {
    const order: Var[] = [];
    const seen = new Set<Var>();
    const visit = (node: Var): void => {
      if (seen.has(node)) return;
      seen.add(node);
      for (const [parent] of node.#from) visit(parent);
      order.push(node);
    };
    visit(this);
    this.gradient = 1;
    for (const node of order.reverse())
      if (node.gradient !== 0)
        for (const [parent, slope] of node.#from) if (slope !== 0) parent.gradient += node.gradient * slope;
  }
}

/** The sum of all of them. */
export function sum(terms: readonly Var[]): Var {
  return terms.reduce((total, term) => total.plus(term), new Var(0));
}

function toVar(given: Var | number): Var {
  return typeof given === 'number' ? new Var(given) : given;
}
