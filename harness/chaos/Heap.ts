/**
 * The heap after a garbage collection, and whether it grows.
 */
import { Effect } from "effect"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")

export interface Sample {
  /** Rounds until then. */
  readonly rounds: number
  readonly bytes: number
}

/** What is in use once nothing is left to collect. Two turns of the event loop let finished work go first. */
export const sample = (rounds: number): Effect.Effect<Sample> =>
  Effect.gen(function* () {
    for (let turn = 0; turn < 2; turn++) {
      yield* Effect.sleep(1)
      collect()
    }
    return { rounds, bytes: process.memoryUsage().heapUsed }
  })

/** Bytes per round by least squares, without the first half: until then code is still being compiled. */
export const slope = (samples: ReadonlyArray<Sample>): number => {
  const kept = samples.slice(Math.floor(samples.length / 2))
  const meanRounds = mean(kept.map(({ rounds }) => rounds))
  const meanBytes = mean(kept.map(({ bytes }) => bytes))
  const spread = mean(kept.map(({ rounds }) => (rounds - meanRounds) ** 2))
  const together = mean(kept.map(({ bytes, rounds }) => (rounds - meanRounds) * (bytes - meanBytes)))
  return spread === 0 ? 0 : together / spread
}

const mean = (values: ReadonlyArray<number>): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length
