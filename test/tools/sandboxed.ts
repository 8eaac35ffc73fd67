/** Runs a command in the sandbox, in a process of its own that a test can kill. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { tmpdir } from "node:os"
import { mkdtempSync } from "node:fs"
import { join } from "node:path"
import * as Workspace from "./workspace.ts"

const root = mkdtempSync(join(tmpdir(), "effect-agent-sandboxed-"))
const program = Effect.gen(function* () {
  const { call } = yield* Workspace.make({}, () => ({ root, shell: { sandbox: "require" } }))
  const { text } = yield* call("shell", { command: process.argv[2] ?? "" })
  console.log(text)
})
await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
