/**
 * What is to be seen of a failure that nothing caught: its message and where the application called, in few lines.
 */

/** Takes the frames out of the stack of an error that is made where no frame is of the application. */
export const strip = (error: Error): void => setStack(error, [])

/** Hides fields from what prints an error with all it holds. They are read as ever. */
export const hide = <E extends Error>(error: E, ...fields: ReadonlyArray<keyof E>): void => {
  for (const field of fields) Reflect.defineProperty(error, field, { enumerable: false })
}

/** Has the stack end with the frames of `caller`, in place of those of Effect's fibers. Of a failure that is no error, such as `ConfigError`, that of its cause. */
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

const setStack = (error: Error, frames: ReadonlyArray<string>): void => {
  const head = error.message === "" ? error.name : `${error.name}: ${error.message}`
  Reflect.defineProperty(error, "stack", {
    value: [head, ...frames].join("\n"),
    configurable: true,
    enumerable: false,
    writable: true
  })
}

/** Up to those of Effect. */
const framesOf = ({ stack = "" }: Error): ReadonlyArray<string> => {
  const frames = framesIn(stack)
  const end = frames.findIndex((frame) => ofEffect.test(frame))
  return end === -1 ? frames : frames.slice(0, end)
}

const framesIn = (stack: string): ReadonlyArray<string> =>
  stack.split("\n").filter((line) => line.startsWith("    at "))

const ofEffect = /~effect\/|Generator\.next|FiberImpl\.|\/node_modules\/effect\//
