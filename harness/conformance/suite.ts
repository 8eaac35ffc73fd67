/**
 * What a kind of conformance test is: a folder of cases, each judged on its own.
 */

/** What came of one case. `problems` is empty when it passed; `actual` is what was judged. */
export interface Judged {
  readonly problems: ReadonlyArray<string>
  readonly actual: unknown
}

export interface Case {
  readonly name: string
  /** How a failure names the case. Default: `name`. */
  readonly title?: string
  readonly run: () => Promise<Judged>
}

export interface Suite {
  readonly cases: ReadonlyArray<Case>
  /** What the folder holds and nobody can run yet, a line each. */
  readonly skipped?: ReadonlyArray<string>
  /** What was measured besides, a line each, from the cases and their verdicts. */
  readonly figures?: (verdicts: ReadonlyMap<string, Judged>) => ReadonlyArray<string>
  /** How many cases may run at once. */
  readonly concurrency: number
  readonly close?: () => Promise<void>
}

export interface Options {
  /** All there is to try, where a kind usually tries a part. */
  readonly whole: boolean
}

/** Opens a folder of cases. */
export type Kind = (dir: string, options: Options) => Promise<Suite>
