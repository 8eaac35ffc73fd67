/**
 * Runs a command that says much and then waits, with the tool, and tells what memory that holds: `{"held": BYTES}` once
 * all has been said, on stdout. A process of its own, as everybody's garbage is in the same heap. Needs `--expose-gc`.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Deferred, Effect } from "effect"
import { Tool } from "effect-agent"
import { ShellTool } from "effect-agent/tools"

const bytes = Number(process.argv[2])
const command = `head -c ${bytes} /dev/zero | tr '\\0' x; echo; echo said; exec sleep 60`

/** What is in use once nothing is left to collect: strings and buffers alike. Buffers are given back a while after. */
const inUse = Effect.gen(function* () {
  let least = Infinity
  for (let turn = 0; turn < 10; turn++) {
    yield* Effect.sleep("10 millis")
    globalThis.gc?.()
    const { arrayBuffers, heapUsed } = process.memoryUsage()
    least = Math.min(least, heapUsed + arrayBuffers)
  }
  return least
})

const shell = ShellTool.make({ root: "." })

const program = Effect.gen(function* () {
  const allSaid = yield* Deferred.make<void>()
  const context = Tool.ToolContext.of({
    toolCallId: "call-1",
    idempotencyKey: "key",
    runId: "run-1",
    turn: 1,
    progress: (partial) =>
      JSON.stringify(partial).includes("said") ? Deferred.succeed(allSaid, undefined) : Effect.void
  })
  const run = (text: string) =>
    Effect.scoped(shell.execute({ command: text })).pipe(Effect.provideService(Tool.ToolContext, context))
  // What loads at the first use is no output.
  yield* run("true")
  const before = yield* inUse
  yield* Effect.forkScoped(run(command))
  yield* Deferred.await(allSaid)
  process.stdout.write(JSON.stringify({ held: (yield* inUse) - before }))
})

await program.pipe(Effect.scoped, Effect.provide(NodeServices.layer), Effect.runPromise)
