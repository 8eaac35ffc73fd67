/**
 * A run in the event vocabularies of other agent loops, for what was written against them. Each namespace has a pure
 * `step`, its `initial` state, and `project` for a whole stream. In `OneRingStream` the last two are functions of the names
 * to use.
 */
export * as Karl from "./Karl.ts"
export * as Pi from "./Pi.ts"
export * as OneRingEmitter from "./OneRingEmitter.ts"
export * as OneRingStream from "./OneRingStream.ts"
