/**
 * The tools that belong to an owner, such as a server, which replaces all of them in one step.
 */
import * as Effect from "effect/Effect"
import type * as Tool from "../Tool.ts"
import * as InvalidTool from "./invalidTool.ts"

type Tools = ReadonlyMap<string, Tool.Any>

export class ToolOwners {
  private readonly ownerOf = new WeakMap<Tool.Any, string>()

  /** Succeeds with all tools, and with the names that others have. A name that the owner keeps stays at its place. */
  replace(
    registered: Tools,
    owner: string,
    tools: ReadonlyArray<Tool.Any>
  ): Effect.Effect<readonly [registered: Tools, taken: ReadonlyArray<string>]> {
    return Effect.suspend(() => {
      const fault = tools.map(InvalidTool.of).find((fault) => fault !== undefined)
      if (fault !== undefined) return Effect.die(fault)
      const isOwn = ([, tool]: readonly [string, Tool.Any]) => this.ownerOf.get(tool) === owner
      const others = new Map([...registered].filter((entry) => !isOwn(entry)))
      const own = new Map(tools.filter(({ name }) => !others.has(name)).map((tool) => [tool.name, tool]))
      const kept = [...registered].filter(([name]) => others.has(name) || own.has(name))
      for (const tool of own.values()) this.ownerOf.set(tool, owner)
      const taken = tools.map(({ name }) => name).filter((name) => others.has(name))
      return Effect.succeed([new Map([...kept, ...own]), taken])
    })
  }
}
