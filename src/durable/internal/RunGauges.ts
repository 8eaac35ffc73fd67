/** Measures the runs of a database that have not ended. The exporter of metrics, if there is one, sends the figures. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Schedule from "effect/Schedule"
import type { Service as Logs } from "../../runs/RunLogStore.ts"

const gauge = (name: string, description: string) =>
  Metric.gauge(`effect_agent.durable.runs.${name}`, { description })

const seen = Metric.gauge("effect_agent.durable.seen", {
  description: "The time at which this process has last read the database, in seconds since the epoch"
})
const unended = gauge("unended", "Runs that have not ended")
const parked = gauge("parked", "Runs that no worker starts until someone resumes them")
const repeated = gauge("repeated", "Runs that were started again, and have made no progress since")
const oldest = gauge("oldest", "The age of the oldest run that has not ended and is not parked, in seconds")

/** Measures four times a minute until the scope closes. */
export const measure = (logs: Logs) =>
  Effect.gen(function* () {
    const runs = yield* logs.unended
    const now = yield* Clock.currentTimeMillis
    const going = runs.filter((run) => run.parked === undefined)
    const ages = going.map(({ created }) => (now - created) / 1000)
    yield* Metric.update(unended, runs.length)
    yield* Metric.update(parked, runs.length - going.length)
    yield* Metric.update(repeated, going.filter(({ attempts }) => attempts > 1).length)
    yield* Metric.update(
      oldest,
      ages.reduce((most, age) => Math.max(most, age), 0)
    )
    yield* Metric.update(seen, now / 1000)
  }).pipe(Effect.ignore, Effect.repeat(Schedule.spaced("15 seconds")), Effect.forkScoped, Effect.asVoid)
