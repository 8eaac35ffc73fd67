/**
 * The tools of a registry: their order, their owners, and the streams that follow them.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type * as Tool from "../Tool.ts"
import * as InvalidTool from "./invalidTool.ts"

type Tools = ReadonlyMap<string, Tool.Any>

export class RegisteredTools {
  /** An owner, such as a server, replaces all of its tools in one step. */
  private readonly ownerOf = new WeakMap<Tool.Any, string>()
  private readonly watchers = new Set<Queue.Enqueue<Tools>>()
  tools: Tools = new Map()

  private set(tools: Tools): void {
    this.tools = tools
    for (const watcher of this.watchers) Queue.offerUnsafe(watcher, tools)
  }

  add(tool: Tool.Any): void {
    this.set(new Map(this.tools).set(tool.name, tool))
  }

  /** Returns whether there was such a tool. */
  remove(isRemoved: (name: string) => boolean): boolean {
    const before = this.tools.size
    this.set(new Map([...this.tools].filter(([name]) => !isRemoved(name))))
    return this.tools.size < before
  }

  /** Succeeds with the names that others have. A name that the owner keeps stays at its place. */
  replace(owner: string, tools: ReadonlyArray<Tool.Any>): Effect.Effect<ReadonlyArray<string>> {
    return Effect.suspend(() => {
      const fault = tools.map(InvalidTool.of).find((fault) => fault !== undefined)
      if (fault !== undefined) return Effect.die(fault)
      const isOwn = ([, tool]: readonly [string, Tool.Any]) => this.ownerOf.get(tool) === owner
      const others = new Map([...this.tools].filter((entry) => !isOwn(entry)))
      const own = new Map(tools.filter(({ name }) => !others.has(name)).map((tool) => [tool.name, tool]))
      const kept = [...this.tools].filter(([name]) => others.has(name) || own.has(name))
      for (const tool of own.values()) this.ownerOf.set(tool, owner)
      this.set(new Map([...kept, ...own]))
      return Effect.succeed(tools.map(({ name }) => name).filter((name) => others.has(name)))
    })
  }

  /** The tools now, and after changes. A slow reader gets the newest ones. */
  readonly changes: Stream.Stream<Tools> = Stream.callback(
    (watcher) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          this.watchers.add(watcher)
          Queue.offerUnsafe(watcher, this.tools)
        }),
        () => Effect.sync(() => this.watchers.delete(watcher))
      ),
    { bufferSize: 1, strategy: "sliding" }
  )
}
