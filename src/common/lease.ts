/** A resource in use -> a lease that ends the use when it is disposed of. A lease may be disposed of twice. */

/** Returns a lease that calls `end` once. */
export function lease(end: () => void): Disposable {
  const leases = new LeaseScope();
  leases.add({ [Symbol.dispose]: end });
  return leases;
}

/** Leases that end together: with their scope, or with the value that they were handed over to. */
export class LeaseScope implements Disposable {
  #leases: Disposable[] = [];

  /** Adds a lease unless it is null, and returns it. */
  add<Lease extends Disposable | null>(added: Lease): Lease {
    if (added) this.#leases.push(added);
    return added;
  }

  /** Makes the value the owner of all leases. The end of the scope then no longer ends them. */
  handOver<Value extends object>(value: Value): Value & Disposable {
    const owned = new LeaseScope();
    owned.#leases = this.#leases;
    this.#leases = [];
    return Object.assign(value, { [Symbol.dispose]: () => owned[Symbol.dispose]() });
  }

  /** Returns `count` scopes that own all leases together: the leases end with the last scope. */
  share(count: number): LeaseScope[] {
    const owned = this.handOver({});
    let left = count;
    return Array.from({ length: count }, () => {
      const scope = new LeaseScope();
      scope.add(
        lease(() => {
          left -= 1;
          if (left === 0) owned[Symbol.dispose]();
        }),
      );
      return scope;
    });
  }

  [Symbol.dispose](): void {
    for (let last = this.#leases.pop(); last; last = this.#leases.pop()) last[Symbol.dispose]();
  }
}
