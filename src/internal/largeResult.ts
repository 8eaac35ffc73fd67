/**
 * Cuts the result of a tool call that is too large for the model.
 */
import * as Effect from "effect/Effect"
import type { ToolOutput } from "../AgentEvent.ts"
import type { ToolCall } from "../Message.ts"
import type { Run } from "./run.ts"
import * as Output from "./toolOutput.ts"

/** Makes the result for the model, and stores its whole text first where that is too large. */
export const fit = (run: Run, call: ToolCall, output: ToolOutput): Effect.Effect<ToolOutput> => {
  const cut = run.resultLimit({ runId: run.id, toolCallId: call.id, toolName: call.name }, output)
  if (cut === undefined) return Effect.succeed(bounded(output))
  const unstored = bounded(Output.plain(cut.unstored))
  return run.attempt(cut.store).pipe(
    Effect.map(({ output, stored }) => {
      run.emit({ _tag: "ArtifactStored", toolCallId: call.id, ...stored })
      return bounded(Output.plain(output))
    }),
    Effect.catchCause((cause) =>
      run.control.stop === undefined
        ? Effect.as(
            Effect.logWarning(`The large result of tool ${call.name} could not be stored`, cause),
            unstored
          )
        : Effect.succeed(unstored)
    )
  )
}

const bounded = (output: ToolOutput): ToolOutput => {
  const content = output.content.map(Output.bounded)
  return content.every((block, index) => block === output.content[index]) ? output : { ...output, content }
}
