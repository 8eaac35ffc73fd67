/**
 * What tests of an agent need: a provider that says what the test wrote, and one that says what was recorded.
 */
export * as Cassette from "./Cassette.ts"
export * as ScriptedProvider from "./ScriptedProvider.ts"
export * as Step from "./Step.ts"
