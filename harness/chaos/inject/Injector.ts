/**
 * Counts the calls a run makes to the world, and lets one of them go wrong.
 */
import { Effect, Latch } from "effect"

/** What a run calls. `body` is each piece of an answer that is read. */
export const worlds = ["http", "body", "files", "clock", "spawn"] as const
export type World = (typeof worlds)[number]

export const faults = ["error", "error after", "hang", "die before", "die after"] as const
export type Fault = (typeof faults)[number]

export interface Point {
  readonly world: World
  /** From 1. */
  readonly call: number
  readonly fault: Fault
}

export class Injector {
  readonly point: Point | undefined
  readonly counts = new Map<World, number>()
  /** The call that went wrong. */
  fired: string | undefined
  /** From now on nothing goes wrong, and nothing is counted. */
  calm = false
  /** Opens when the run is over: a call that hangs hangs until then, or until it is interrupted. */
  readonly over = Latch.makeUnsafe(false)

  constructor(point: Point | undefined) {
    this.point = point
  }

  /** The fault of this call, if it is the one. */
  next(world: World, name: string): Fault | undefined {
    if (this.calm) return undefined
    const count = (this.counts.get(world) ?? 0) + 1
    this.counts.set(world, count)
    if (this.point?.world !== world || this.point.call !== count) return undefined
    this.fired = name
    return this.point.fault
  }

  /** A call that may go wrong: then it fails as `error` does, with or without having done what it does, hangs, or dies. */
  call<A, E, R>(
    world: World,
    name: string,
    effect: Effect.Effect<A, E, R>,
    error: Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R> {
    return Effect.suspend(() => {
      switch (this.next(world, name)) {
        case undefined:
          return effect
        case "error":
          return error
        case "error after":
          return Effect.andThen(effect, error)
        case "hang":
          return Effect.andThen(this.over.await, effect)
        case "die before":
          return died(name)
        case "die after":
          return Effect.andThen(effect, died(name))
      }
    })
  }
}

const died = (name: string) => Effect.die(new Error(`${planned}: ${name}`))

export const planned = "planned"
