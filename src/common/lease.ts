/** What is in use -> a lease that ends the use when it is disposed of. Disposing of a lease twice is fine. */

/** A lease; `end` is called once. */
export function lease(end: () => void): Disposable {
  const leases = new LeaseScope();
  leases.add({ [Symbol.dispose]: end });
  return leases;
}

/** Leases that end together: with their scope, or with the value that they were handed over to. */
export class LeaseScope implements Disposable {
  #leases: Disposable[] = [];

  /** Adds a lease, if there is one, and returns it. */
  add<Lease extends Disposable | null>(added: Lease): Lease {
    if (added) this.#leases.push(added);
    return added;
  }

  /** Makes the value the owner of all leases: the end of the scope does not end them any more. */
  handOver<Value extends object>(value: Value): Value & Disposable {
    const owned = new LeaseScope();
    owned.#leases = this.#leases;
    this.#leases = [];
    return Object.assign(value, { [Symbol.dispose]: () => owned[Symbol.dispose]() });
  }

  /** As many scopes as asked for, which own all leases together: they end with the last of those. */
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
