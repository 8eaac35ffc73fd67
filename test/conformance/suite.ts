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
  /** How many cases may run at once. */
  readonly concurrency: number
  readonly close?: () => Promise<void>
}

/** Opens a folder of cases. */
export type Kind = (dir: string) => Promise<Suite>
