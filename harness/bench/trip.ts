/**
 * Counts the files, functions and calls of the core that one prompt passes, by the coverage of V8, and prints them as JSON.
 *
 *     node --conditions effect-agent-source harness/bench/trip.ts
 */
import { Effect, Schema } from "effect"
import { Agent, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { Session } from "node:inspector/promises"

/** What a piece of work passed in the core. */
export interface Trip {
  readonly files: number
  readonly functions: number
  readonly calls: number
}

const session = new Session()
session.connect()
await session.post("Profiler.enable")
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true })

/** What was passed since the last time, outside of the scripted provider. */
const passed = Effect.promise(async (): Promise<Trip> => {
  const { result } = await session.post("Profiler.takePreciseCoverage")
  const files = result
    .filter(({ url }) => /\/src\/(?!testing\/)/.test(url) && !url.includes("node_modules"))
    // A range from the start of the file is the evaluation of the module.
    .map(({ functions }) =>
      functions.flatMap(({ ranges: [range] }) =>
        range !== undefined && range.startOffset > 0 && range.count > 0 ? [range.count] : []
      )
    )
    .filter((counts) => counts.length > 0)
  const counts = files.flat()
  return {
    files: files.length,
    functions: counts.length,
    calls: counts.reduce((sum, count) => sum + count, 0)
  }
})

const weather = Tool.make({
  name: "get_weather",
  description: "Returns the weather of a city.",
  params: Schema.Struct({ city: Schema.String }),
  execute: ({ city }) => Effect.succeed(`Rain in ${city}`)
})
const call = ScriptedProvider.toolCall("get_weather", { city: "Oslo" })
const text = ScriptedProvider.text(["It ", "rains."])

/** The second prompt: what is made once for an agent does not count. */
const prompt = (script: ReadonlyArray<typeof text>, isHeard = false) =>
  Effect.gen(function* () {
    yield* passed
    const agent = yield* Agent.make({ model: "any", tools: [weather] })
    const make = yield* passed
    if (isHeard) yield* agent.subscribe(() => Effect.void)
    yield* agent.prompt("Warm up")
    yield* passed
    yield* agent.prompt("How is the weather?")
    return { make, prompt: yield* passed }
  }).pipe(Effect.scoped, Effect.provide(ScriptedProvider.layer([...script, ...script])))

const trips = Effect.gen(function* () {
  const tool = yield* prompt([call, text])
  const heard = yield* prompt([call, text], true)
  const words = yield* prompt([text])
  return { make: tool.make, tool: tool.prompt, heard: heard.prompt, text: words.prompt }
})

console.log(JSON.stringify(await Effect.runPromise(trips)))
