/**
 * Changes one file over and over with the tool of this name, until it is killed. Says when it begins.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem } from "effect"
import { EditTool, WriteTool } from "effect-agent/tools"

const [name, root = ""] = process.argv.slice(2)
const path = "a.txt"

const content = (round: number) => String(round % 10).repeat(300_000)

const write = (round: number) => WriteTool.make({ root }).execute({ path, content: content(round) })
const edit = Effect.flatMap(
  FileSystem.FileSystem.use((files) => files.readFileString(`${root}/${path}`)),
  (oldText) => EditTool.make({ root }).execute({ path, oldText, newText: content(Number(oldText[0]) + 1) })
)

let round = 1
await Effect.suspend(() => (name === "edit" ? edit : write(round++))).pipe(
  Effect.tap(() => Effect.sync(() => process.stdout.write("."))),
  Effect.forever,
  Effect.provide(NodeServices.layer),
  Effect.runPromise
)
