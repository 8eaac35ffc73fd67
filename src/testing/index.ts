/**
 * Providers for tests: one that plays a script, and one that plays recordings.
 *
 * @since 0.1.0
 */
export * as Cassette from "./Cassette.ts"
export * as ScriptedProvider from "./ScriptedProvider.ts"
export * as Step from "./Step.ts"
