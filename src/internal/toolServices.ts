/**
 * What the tools of a registry were registered with: their services, under those of whoever calls.
 */
import * as Context from "effect/Context"
import type * as Tool from "../Tool.ts"

/** Lays services under those of a caller: its span and its request-scoped services win. */
export type Laid = (caller: Context.Context<never>) => Context.Context<never>

export class ToolServices {
  private readonly registered = new Map<Tool.Any, Laid>()
  /** Those of tools that went: a call that was prepared before can still run. */
  private gone: WeakMap<Tool.Any, Laid> | undefined

  set(tool: Tool.Any, services: Context.Context<never>): void {
    this.registered.set(tool, laid(services))
  }

  leave(tool: Tool.Any): void {
    const services = this.get(tool)
    this.registered.delete(tool)
    this.gone ??= new WeakMap()
    this.gone.set(tool, services)
  }

  get(tool: Tool.Any): Laid {
    return this.registered.get(tool) ?? this.gone?.get(tool) ?? alone
  }
}

const alone: Laid = (caller) => caller

/** All calls of a run have one caller, so that this is merged once for a run. */
const laid = (services: Context.Context<never>): Laid => {
  let last: Context.Context<never> | undefined
  let merged = services
  return (caller) => {
    if (caller !== last) {
      merged = Context.merge(services, caller)
      last = caller
    }
    return merged
  }
}
