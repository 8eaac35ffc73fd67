/**
 * Converts the events of a run to the events of other agent loops, for code that was written for them.
 *
 * Each namespace has a pure function `step`, its `initial` state, and `project` for streams. In `OneRingStream`
 * the last two are functions of the event names to use. For code without Effect, `iterate` converts events that `for await` reads.
 *
 * @since 0.1.0
 */
export * as Karl from "./Karl.ts"
export * as Pi from "./Pi.ts"
export * as OneRingEmitter from "./OneRingEmitter.ts"
export * as OneRingStream from "./OneRingStream.ts"
