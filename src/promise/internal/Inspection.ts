/**
 * Adds to the stack of a failure where the application called, in few lines.
 */
import { setStack } from "../../internal/errors.ts"

/**
 * Ends the stack with the frames of `caller`, in place of those of Effect's fibers: that of the error, or of the cause of a failure that
 * is no error, such as `ConfigError`.
 */
export const calledFrom = (error: unknown, called: ReadonlyArray<string>): void => {
  const shown = error instanceof Error ? error : causeOf(error)
  if (shown === undefined || called.length === 0 || known.has(shown)) return
  known.add(shown)
  setStack(shown, [...framesOf(shown), ...called])
}

/** The frames above the function that asks, which is itself left out. None where stacks are written in another way. */
export const caller = (): ReadonlyArray<string> =>
  framesIn(new Error().stack ?? "")
    .slice(2)
    .filter((frame) => !frame.includes("node:internal/"))

const known = new WeakSet<Error>()

const causeOf = (error: unknown): Error | undefined =>
  typeof error === "object" && error !== null && "cause" in error && error.cause instanceof Error
    ? error.cause
    : undefined

/** The frames before those of Effect. */
const framesOf = ({ stack = "" }: Error): ReadonlyArray<string> => {
  const frames = framesIn(stack)
  const end = frames.findIndex((frame) => ofEffect.test(frame))
  return end === -1 ? frames : frames.slice(0, end)
}

const framesIn = (stack: string): ReadonlyArray<string> =>
  stack.split("\n").filter((line) => line.startsWith("    at "))

const ofEffect = /~effect\/|Generator\.next|FiberImpl\.|\/node_modules\/effect\//
