/** Paths in a translated request -> the caller's own paths, in the errors about it. */
import { type ErrorDetail, OnpolicyError } from '../errors.ts';

/** Where the parts of a translated request come from. */
export class PathTranslation {
  readonly #known = new Map<string, string>();

  /** @param pairs own path -> the caller's */
  constructor(pairs: Readonly<Record<string, string>> = {}) {
    for (const [own, callers] of Object.entries(pairs)) this.note(own, callers);
  }

  /** Says where a part comes from, with all that is in it. */
  note(own: string, callers: string): void {
    this.#known.set(own, callers);
  }

  /** The caller's path of a path. Of the parts that are known, the innermost one counts; without any it stays. */
  of(path: string): string {
    for (let end = path.length; end > 0; end = path.lastIndexOf('.', end - 1)) {
      const known = this.#known.get(path.slice(0, end));
      if (known !== undefined) return known + path.slice(end);
    }
    return path;
  }

  /** The same error about the caller's paths. Other values stay. */
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

  /** Does the work; its errors are about the caller's paths. */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      throw this.inError(error);
    }
  }

  /** The same for work that is done at once. */
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
