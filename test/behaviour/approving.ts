/** Tools whose calls wait for approvals, and the answers to them. */
import { Effect, Schema } from "effect"
import { type Agent, type Approval, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"

/** A tool that keeps the params it ran with. */
export const recorder = (name = "remove") => {
  const ran: Array<string> = []
  const tool = Tool.make({
    name,
    description: "Removes a file.",
    params: Schema.Struct({ path: Schema.String }),
    execute: ({ path }) => Effect.sync(() => (ran.push(path), `removed ${path}`))
  })
  return { ran, tool }
}

export const calls = (...paths: ReadonlyArray<string>) =>
  ScriptedProvider.toolCalls(...paths.map((path) => ({ name: "remove", params: { path } })))
export const done = ScriptedProvider.text("done")

/** Answers a request, with approval unless `reply` says otherwise. */
export const approve = (
  given: Agent.Agent,
  request: Approval.Request | undefined,
  reply: Partial<Approval.Reply> = {}
) =>
  given.answer(request?.approvalId ?? "", {
    decision: "approve",
    argumentsHash: request?.argumentsHash ?? "",
    ...reply
  })
