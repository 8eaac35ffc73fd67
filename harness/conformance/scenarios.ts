/**
 * Behaviour scenarios: what a run must show, event by event. Each has its input played and what it showed judged by
 * `compare.mjs` beside the folder.
 */
import { Cause, Effect, Exit, Fiber, Option, References, type Scope } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { type NameOf, type Session, Stage } from "./stage.ts"
import type { Kind } from "./suite.ts"
import type { Words } from "./words.ts"

/** What plays a scenario: the thing under test behind a session, and the projection of what it showed. */
export interface Adapter {
  readonly nameOf: NameOf
  readonly session: (stage: Stage) => Effect.Effect<Session, never, Scope.Scope>
  readonly project: (stage: Stage) => object
}

export const scenarios =
  (adapter: Adapter): Kind =>
  async (dir) => {
    const { compare, format } = await import(pathToFileURL(join(dir, "..", "compare.mjs")).href)
    const files = readdirSync(dir).filter((file) => file.endsWith(".json"))
    return {
      concurrency: 4,
      cases: files.toSorted().map((file) => {
        const scenario = JSON.parse(readFileSync(join(dir, file), "utf8"))
        const run = async () => {
          const actual = await play(adapter, scenario.input)
          return { actual, problems: compare(scenario, actual).map(format) }
        }
        return { name: scenario.name, title: `${scenario.name} [${scenario.class}]`, run }
      })
    }
  }

// ms; a scenario that takes longer hangs.
const patience = 5000

/** Plays one input; the adapter sees nothing else of the scenario. */
const play = async (adapter: Adapter, input: Words): Promise<object> => {
  const stage = new Stage(input, adapter.nameOf)
  const started = Date.now()
  const played = Effect.flatMap(adapter.session(stage), stage.play).pipe(
    Effect.scoped,
    Effect.provideService(References.MinimumLogLevel, "None")
  )
  const exit = await Effect.runPromise(Effect.timeoutOption(Fiber.await(Effect.runFork(played)), patience))
  if (Option.isSome(exit) && Exit.isFailure(exit.value)) throw Cause.squash(exit.value.cause)
  return { ...adapter.project(stage), elapsedMs: Date.now() - started, timeout: Option.isNone(exit) }
}
