/**
 * The model and the tools of a plan.
 */
import { Effect, Layer, Schema, Stream } from "effect"
import { Provider, ProviderError, Tool } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import type { Answer } from "./plan.ts"
import { ToolKind } from "./plan.ts"
import type { Stage } from "./Stage.ts"

/** The model says the answers of the plan, one for each call, and then that it is done. */
export const model = Effect.fnUntraced(function* (stage: Stage) {
  const done = () => ScriptedProvider.text("done")
  const script = yield* ScriptedProvider.make(
    stage.plan.answers.map((answer, index) => () => (stage.calm ? done() : turnOf(stage, answer, index))),
    { exhausted: done }
  )
  const provider = Provider.Provider.of({
    id: script.provider.id,
    stream: (request) => Stream.unwrap(Effect.as(stage.resource, script.provider.stream(request)))
  })
  return { requests: script.requests, layer: Layer.succeed(Provider.Provider, provider) }
})

const turnOf = (stage: Stage, { calls, ending, pieces, thinks }: Answer, index: number) => {
  const text = Array.from({ length: pieces }, (_, piece) => `piece ${index}.${piece} `)
  return ScriptedProvider.turn(
    Step.start,
    Step.run(stage.tick),
    ...(thinks ? [Step.thinking(["hm ", "so"]), Step.run(stage.tick)] : []),
    ...text.flatMap((piece) => [Step.text(piece), Step.run(stage.tick)]),
    ...calls.flatMap(({ to, twice }, call) => {
      const id = `a${index}c${call}`
      const step = callOf(to, id)
      return [step, ...(twice ? [step] : []), Step.run(stage.tick)]
    }),
    endOf(ending, calls.length > 0)
  )
}

const callOf = (to: Answer["calls"][number]["to"], id: string): Step.Step => {
  switch (to) {
    case "badParams":
      return Step.toolCall("plain", { n: "many" }, { id })
    case "badJson":
      return Step.rawToolCall("plain", ['{"n":'], { id })
    default:
      return Step.toolCall(to, { n: 1 }, { id })
  }
}

const endOf = (ending: Answer["ending"], calls: boolean): Step.Step => {
  const usage = { input: 7, output: 3 }
  switch (ending) {
    case "finish":
      return Step.finish(calls ? "toolUse" : "stop", usage)
    case "length":
    case "error":
      return Step.finish(ending, usage)
    case "cut":
      return Step.eof
    case "failure":
      return Step.fail(new ProviderError.Overloaded({ detail: "planned" }))
    case "defect":
      return Step.die(new Error("planned"))
  }
}

/** One tool of each kind. Each holds a resource while it runs. */
export const tools = (stage: Stage): ReadonlyArray<Tool.Runnable> =>
  ToolKind.literals.map((kind) =>
    Tool.make({
      name: kind,
      description: kind,
      params: Schema.Struct({ n: Schema.Int }),
      ...(kind === "single" ? { executionMode: "sequential" } : {}),
      execute: () =>
        Effect.gen(function* () {
          const { progress, toolCallId } = yield* Tool.ToolContext
          stage.executed(toolCallId)
          yield* stage.resource
          yield* stage.tick
          return yield* behaviour(stage, kind, progress)
        })
    })
  )

const behaviour = (
  stage: Stage,
  kind: ToolKind,
  progress: Tool.ToolContext["Service"]["progress"]
): Effect.Effect<unknown, string> => {
  switch (kind) {
    case "plain":
    case "single":
      return Effect.succeed(kind)
    case "failing":
      return Effect.fail("not today")
    case "dying":
      return Effect.die(new Error("boom"))
    case "sorry":
      return Effect.succeed(Tool.failure("sorry"))
    case "slow":
      return Effect.andThen(progress(Tool.output("well")), stage.tick).pipe(
        Effect.andThen(Effect.yieldNow),
        Effect.repeat({ times: 8 })
      )
    case "endless":
      return Effect.never
    case "deaf":
      return Effect.uninterruptible(Effect.sleep("1 hour"))
    case "terminating":
      return Effect.succeed(Tool.output("enough", { terminate: true }))
  }
}
