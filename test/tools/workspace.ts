/**
 * A temp folder with a root for the tools and a secret beside it, and calls as the loop makes them.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Path, type Scope } from "effect"
import type { ChildProcessSpawner } from "effect/process"
import { type AgentEvent, Tool, ToolRegistry } from "effect-agent"
import { Tools } from "effect-agent/tools"

export const secret = "the secret outside"

/** What a call gave: its text, and the rest. */
export interface Called extends ToolRegistry.Executed {
  readonly text: string
}

export interface Workspace {
  readonly root: string
  /** A folder beside the root, with `secret.txt` in it. */
  readonly outside: string
  readonly call: (
    name: string,
    params: object,
    progress?: (text: string) => void,
    context?: Partial<Tool.ToolContext["Service"]>
  ) => Effect.Effect<Called>
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
}

/** Makes the root with these files. */
export const make = Effect.fnUntraced(function* (
  files: Readonly<Record<string, string | Uint8Array>> = {},
  options?: (folders: { readonly root: string; readonly outside: string }) => Partial<Tools.Options>
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const base = yield* fs.realPath(yield* fs.makeTempDirectoryScoped({ prefix: "effect-agent-tools-" }))
  const root = path.join(base, "root")
  const outside = path.join(base, "outside")
  yield* fs.makeDirectory(root)
  yield* fs.makeDirectory(outside)
  yield* fs.writeFileString(path.join(outside, "secret.txt"), secret)
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(root, name)
    yield* fs.makeDirectory(path.dirname(file), { recursive: true })
    yield* typeof content === "string" ? fs.writeFileString(file, content) : fs.writeFile(file, content)
  }
  const registry = yield* ToolRegistry.make(...Tools.make({ root, ...options?.({ root, outside }) }))
  const call: Workspace["call"] = (name, params, progress, context) =>
    Effect.gen(function* () {
      const prepared = yield* registry.prepare({
        type: "toolCall",
        id: "call-1",
        name,
        rawArguments: JSON.stringify(params),
        params: JSON.parse(JSON.stringify(params))
      })
      const executed = yield* registry.execute(prepared, {
        toolCallId: "call-1",
        idempotencyKey: "key",
        runId: "run-1",
        turn: 1,
        progress: (partial) => Effect.sync(() => progress?.(textOf(Tool.render(partial)))),
        ...context
      })
      return { ...executed, text: textOf(executed) }
    }).pipe(Effect.orDie)
  return { root, outside, call, fs, path } satisfies Workspace
})

/** Runs on the real file system, with real processes. */
export const provide = <A, E>(
  effect: Effect.Effect<
    A,
    E,
    FileSystem.FileSystem | Path.Path | ChildProcessSpawner.ChildProcessSpawner | Scope.Scope
  >
): Effect.Effect<A, E> => effect.pipe(Effect.scoped, Effect.provide(NodeServices.layer))

const textOf = (output: AgentEvent.ToolOutput): string =>
  output.content.map((block) => (block.type === "text" ? block.text : `<${block.type}>`)).join("\n")
