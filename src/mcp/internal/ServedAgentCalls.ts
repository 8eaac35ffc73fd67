/**
 * Runs a prompt of a client with an agent.
 */
import type * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Agent } from "../../Agent.ts"
import * as AgentEvent from "../../AgentEvent.ts"
import { firstLine, of as failureText } from "../../internal/failureText.ts"
import * as Message from "../../Message.ts"
import * as Tool from "../../Tool.ts"
import * as Content from "./ServedContent.ts"
import type { Progress } from "./ServedProgress.ts"

/** The JSON Schema of the params. */
export const parameters = {
  type: "object",
  properties: {
    prompt: {
      type: "string",
      description: "The task, with all that the agent must know: it sees nothing else of this conversation."
    }
  },
  required: ["prompt"],
  additionalProperties: false
} as const

/** The answer of a new agent, which is an error if its run did not end with one. */
export const call = <E, R>(
  make: Effect.Effect<Agent, E, R | Scope.Scope>,
  params: unknown,
  progress: Progress
): Effect.Effect<McpSchema.CallToolResult, never, Exclude<R, Scope.Scope>> => {
  const prompt = Predicate.hasProperty(params, "prompt") ? params.prompt : undefined
  if (typeof prompt !== "string")
    return Effect.succeed(Content.resultOf(Tool.failure("`prompt` is missing: expected a string")))
  return Effect.flatMap(make, (agent) => run(agent, prompt, progress)).pipe(
    Effect.scoped,
    Effect.catch((error) => Effect.succeed(Tool.failure(`The agent failed: ${failureText(error)}`))),
    Effect.catchDefect((defect) =>
      Effect.as(
        Effect.logError("The agent died", defect),
        Tool.failure(`The agent failed unexpectedly: ${firstLine(defect)}`)
      )
    ),
    Effect.map(Content.resultOf)
  )
}

const run = Effect.fnUntraced(function* (agent: Agent, prompt: string, progress: Progress) {
  let text = ""
  let ended: AgentEvent.RunEnd | undefined
  let output: Schema.Json | undefined
  const see = (event: AgentEvent.AgentEvent) => {
    if (event._tag === "RunEnd") ended = event
    if (event._tag === "Output") output = event.value
    if (event._tag === "MessageEnd" && event.message.role === "assistant")
      text = Message.textOf(event.message)
  }
  const events = AgentEvent.outermost(agent.stream(prompt))
  yield* Stream.runForEachArray(events, (some) => {
    some.forEach(see)
    const said = some.map(wordsOf).join("")
    return said === "" ? progress() : progress(said)
  })
  return resultOf(text, ended, output)
})

/** What a client shows of an event while the agent works. */
const wordsOf = (event: AgentEvent.AgentEvent): string => {
  if (AgentEvent.isTextDelta(event)) return event.delta.delta
  return event._tag === "ToolExecutionStart" ? `\n→ ${event.label ?? event.toolName}\n` : ""
}

const resultOf = (text: string, ended: AgentEvent.RunEnd | undefined, output: Schema.Json | undefined) => {
  switch (ended?.status) {
    case "suspended":
      return Tool.failure("The agent did not finish: its run waits for a person.")
    case "cancelled":
      return Tool.failure("The agent was cancelled.")
    default:
      return output === undefined
        ? answer(text, ended)
        : Tool.output(JSON.stringify(output), { details: output })
  }
}

const answer = (text: string, ended: AgentEvent.RunEnd | undefined) => {
  const notes = [
    ...(text.trim() === "" ? ["[The agent gave no answer.]"] : [text]),
    ...(ended?.status === "incomplete"
      ? ["[The agent reached its limit of turns: its work is not complete.]"]
      : [])
  ]
  return Tool.output(notes.join("\n\n"))
}
