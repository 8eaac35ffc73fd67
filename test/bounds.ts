/**
 * The bounds that `architecture.slow.test.ts` checks, and every exception from them with its reason. An exception that is no
 * longer needed fails the test: delete its line.
 */

/** Lines of code of a module: lines that are neither blank nor only a comment. */
export const maxModule = 450

/** Lines of code of a function. */
export const maxFunction = 80

/** Lines of code of the core: `src/*.ts` and `src/internal/*.ts`. Lower it with every change that removes code. */
export const maxCore = 13_656

/** Public modules of the core: the files in `src`, without `index.ts`. */
export const maxPublic = 22

/** Modules that may be longer than `maxModule`, with the lines of code each may have. */
export const longModules: Readonly<Record<string, readonly [max: number, reason: string]>> = {}

/** Functions that may be longer than `maxFunction`, as `module function`. */
export const longFunctions: Readonly<Record<string, string>> = {}

/** Entries of `schedulers`. Lower it with every change that removes one; one is to remain. */
export const maxSchedulers = 1

/** Modules, outside `cli`, that start, observe or wake fibers by other means than effects. */
export const schedulers: Readonly<Record<string, string>> = {
  "internal/reader.ts": "wakes a waiting reader in a microtask"
}

/** Public modules whose docstrings are not complete yet. A module that passes `docs.test.ts` leaves the list. */
export const undocumented: ReadonlyArray<string> = []
