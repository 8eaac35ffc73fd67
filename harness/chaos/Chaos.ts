/**
 * What a kind of chaos is, for `main.ts`: it does something many times at random, and says what broke.
 */
import type { Effect } from "effect"

export interface Options {
  readonly seed: number
  readonly count: number
  /** The mutants to run: those whose file or fault matches this pattern. Default: all. */
  readonly only?: string
  /** The store of `sessions`: `jsonl`, `sqlite` or `postgres`, default all of them; that of `durable`: default `sqlite`. */
  readonly store?: string
  /** The seconds of each run of `server`. Default 60. */
  readonly seconds?: number
  /** The workers of `durable`, which then plays rounds. Default: one worker a run, which is killed. */
  readonly workers?: number
  /** The runs of `durable` that are due at once, or as many of them a second as `rate`. */
  readonly due?: number
  readonly rate?: number
  /** Whether the workers are killed before any of the due runs has had an answer. Default `false`. */
  readonly crash?: boolean
  /** The runs of `durable` that go on at a time on one worker, and then the numbers that are queued. */
  readonly concurrent?: number
  readonly queued?: ReadonlyArray<number>
  /** Of the calls at which `paths` swaps once, one in so many, at random. Default: each. */
  readonly oneIn?: number
  /** The runs of `durable` whose cost is measured. */
  readonly cost?: number
  /** Says how far it has come. */
  readonly say: (line: string) => void
}

export interface Outcome {
  /** What was measured, to be printed. */
  readonly figures: Readonly<Record<string, string | number>>
  /** Promises that were broken, each with the seed that shows it. None: all is well. */
  readonly violations: ReadonlyArray<string>
}

export interface Chaos {
  /** How often, unless told otherwise. */
  readonly count: number
  /** What is counted. Default: times. */
  readonly unit?: string
  readonly run: (options: Options) => Effect.Effect<Outcome>
}
