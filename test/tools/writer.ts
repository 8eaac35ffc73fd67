/**
 * Writes one file over and over with the tool, until it is killed. Says when it begins.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { WriteTool } from "effect-agent/tools"

const { run } = WriteTool.make({ root: process.argv[2] ?? "" })
const write = (round: number) => run({ path: "a.txt", content: String(round % 10).repeat(300_000) })

let round = 0
await Effect.suspend(() => write(round++)).pipe(
  Effect.tap(() => Effect.sync(() => process.stdout.write("."))),
  Effect.forever,
  Effect.provide(NodeServices.layer),
  Effect.runPromise
)
