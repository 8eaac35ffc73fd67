/** Runs a command in the sandbox, in a process of its own that a test can kill. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import * as Workspace from "./workspace.ts"

const program = Effect.gen(function* () {
  const { call } = yield* Workspace.make({}, () => ({ shell: { sandbox: "require" } }))
  const { text } = yield* call("shell", { command: process.argv[2] ?? "" })
  console.log(text)
})
await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
