/** Paths in a translated request -> the caller's own paths, in the errors about it. */
import { type ErrorDetail, OnpolicyError } from '../errors.ts';

/** Maps paths of a translated request to the caller's paths. */
export class PathTranslation {
  readonly #known = new Map<string, string>();
  readonly #outer: string;

  /**
   * @param pairs path in the translated request -> the caller's path
   * @param outer the caller's path of the field that is the translated request; empty if it is no field
   */
  constructor(pairs: Readonly<Record<string, string>> = {}, outer = '') {
    this.#outer = outer;
    for (const [own, callers] of Object.entries(pairs)) this.note(own, callers);
  }

  /** Records the caller's path of a part. It also applies to everything inside the part. */
  note(own: string, callers: string): void {
    this.#known.set(own, callers);
  }

  /** Returns the caller's path for a path, by the innermost known part. A path without one is a path in the outer field. */
  of(path: string): string {
    for (let end = path.length; end > 0; end = path.lastIndexOf('.', end - 1)) {
      const known = this.#known.get(path.slice(0, end));
      if (known !== undefined) return known + path.slice(end);
    }
    return this.#outer === '' ? path : `${this.#outer}.${path}`;
  }

  /** Returns the error with the caller's paths. Returns any other value unchanged. */
  inError(error: unknown): unknown {
    if (!(error instanceof OnpolicyError)) return error;
    const { code, message, param, detail, cause } = error;
    if (param === undefined && !detail) return error;
    const first = param ?? detail![0]?.loc.join('.') ?? '';
    return new OnpolicyError(code, this.#inMessage(message, first), {
      ...(cause === undefined ? {} : { cause }),
      ...(param === undefined ? {} : { param: this.of(param) }),
      ...(detail ? { detail: detail.map((one) => this.#inDetail(one)) } : {}),
    });
  }

  /** Runs asynchronous work. Its errors are rethrown with the caller's paths. */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      throw this.inError(error);
    }
  }

  /** Runs synchronous work. Its errors are rethrown with the caller's paths. */
  runNow<Result>(work: () => Result): Result {
    try {
      return work();
    } catch (error) {
      throw this.inError(error);
    }
  }

  #inDetail(detail: ErrorDetail): ErrorDetail {
    const path = detail.loc.join('.');
    return { ...detail, loc: this.of(path).split('.'), msg: this.#inMessage(detail.msg, path) };
  }

  #inMessage(message: string, path: string): string {
    return message.startsWith(`${path}:`) ? this.of(path) + message.slice(path.length) : message;
  }
}
